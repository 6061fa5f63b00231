// Services that were profiled together: a picture of what each could bring, and tables.

/** Size of a service's box, and the room between the entry and the others, and between two of these. */
const SERVICE = { width: 210, height: 46, right: 190, below: 18 };

/** Letters of a name that fit into a box. */
const SERVICE_LETTERS = 26;

/** The target of a service that stands best by what is chosen, and its effect; null where none has one. */
function bestOf(service) {
  const targets = service.targets.map((index) => data.targets[index]).filter((target) => effectOf(target));
  const best = targets.sort((a, b) => (standing(a).rank ?? Infinity) - (standing(b).rank ?? Infinity))[0];
  return best ? { target: best, effect: effectOf(best) } : null;
}

/** The name of a target without that of its service. */
const nameIn = (service, target) => (target.name.startsWith(service.name + "/") ? target.name.slice(service.name.length + 1) : target.name);

function serviceWords(service) {
  const best = bestOf(service);
  if (best === null) return service.name + ": " + (service.is_there ? "nothing of it was measured by this" : "its profile is not here");
  const { target, effect } = best;
  return service.name + ": if " + nameIn(service, target) + " were " + percent(effect.speedup) + " faster, " + data.points[state.point].name + " of " + data.joint.entry + " would change by " + change(effect.pct) + " " + interval(effect.low, effect.high);
}

function servicePicture() {
  const [entry, ...others] = data.joint.services;
  const rows = Math.max(1, others.length);
  const height = rows * (SERVICE.height + SERVICE.below) - SERVICE.below + 4;
  const width = SERVICE.width + (others.length ? SERVICE.right + SERVICE.width : 0) + 4;
  const shorten = (name) => (name.length > SERVICE_LETTERS ? name.slice(0, SERVICE_LETTERS / 2) + "\u2026" + name.slice(1 - SERVICE_LETTERS / 2) : name);
  const most = Math.max(1, ...data.joint.services.map((one) => Math.abs(bestOf(one)?.effect.pct ?? 0)));
  const at = (i) => ({ x: SERVICE.width + SERVICE.right + 2, y: i * (SERVICE.height + SERVICE.below) + 2 });
  const middle = { x: 2, y: (height - SERVICE.height) / 2 };
  const box = (service, { x, y }, isEntry) => {
    const best = bestOf(service);
    const gain = best ? shorten(nameIn(service, best.target)) + (isEntry ? " " + change(best.effect.pct) : "") : service.is_there ? "not measured" : "no profile";
    const drawn = [
      svg("title", {}, serviceWords(service)),
      svg("rect", { width: SERVICE.width, height: SERVICE.height, rx: 6 }),
      svg("text", { x: 10, y: 19 }, shorten(service.name)),
      svg("text", { class: "tick", x: 10, y: 36 }, gain),
    ];
    const group = { class: "service" + (isEntry ? " entry" : "") + (service.is_there ? "" : " again"), transform: `translate(${x} ${y})` };
    if (best === null) return svg("g", group, drawn);
    const visit = (event) => {
      event.preventDefault();
      choose(best.target.index);
    };
    return svg("a", { ...group, href: "#ranking", "aria-label": serviceWords(service), onclick: visit }, drawn);
  };
  const arrow = (service, i) => {
    const best = bestOf(service);
    const [x1, y1] = [at(i).x, at(i).y + SERVICE.height / 2];
    const [x2, y2] = [middle.x + SERVICE.width, middle.y + SERVICE.height / 2];
    const half = (x1 - x2) / 2;
    const tones = best ? tone(best.target) : "none";
    return svg(
      "g",
      { class: "gain " + tones },
      svg("path", { d: `M ${x1} ${y1} C ${x1 - half} ${y1}, ${x2 + 8 + half} ${y2}, ${x2 + 8} ${y2}`, "stroke-width": best ? Math.max(1.5, 9 * (Math.abs(best.effect.pct) / most)) : 1 }),
      svg("polygon", { points: `${x2 + 1},${y2} ${x2 + 11},${y2 - 5} ${x2 + 11},${y2 + 5}` }),
      best ? svg("text", { x: x1 - 8, y: y1 - 9, "text-anchor": "end" }, change(best.effect.pct)) : null,
    );
  };
  const label = "Picture of services: what the best target of each does for " + data.joint.entry + ". " + data.joint.services.map(serviceWords).join(". ") + ".";
  return svg("svg", { class: "services", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, others.map(arrow), box(entry, middle, true), others.map((one, i) => box(one, at(i), false)));
}

function serviceTable() {
  const head = ["service", "cores", "held", "missed", "left out", "why"];
  const rows = data.joint.services.map((one) => {
    const cores = one.cores === null ? "\u2013" : one.cores_used === null ? String(one.cores) : fixed(one.cores_used, 1) + " of " + one.cores;
    const count = (n) => el("td", {}, one.is_there ? String(n) : "\u2013");
    const why = one.discarded.map(([reason, many]) => reason + " (" + many + ")").join("; ");
    const discarded = one.discarded.reduce((sum, [, many]) => sum + many, 0);
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "name" }, one.name), one.name === data.joint.entry ? el("span", { class: "kind" }, " entry") : null),
      el("td", {}, cores), count(one.stretches), count(one.absent), count(discarded),
      el("td", { class: "reasons" }, one.is_there ? why : "its profile is not here: name it too"),
    );
  });
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Services, and what was lost in each" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows)));
}

/** Where the latency of a request of the entry goes. */
function splitTable() {
  const { split, untold, entry } = data.joint;
  if (split === null) return el("p", { class: "hint" }, "Where the latency goes by service can't be told: " + untold + ".");
  const share = (ns) => percent(ns / split.latency_ns);
  const row = (name, calls, own) => {
    const total = own.work_ns + own.queue_ns + own.timer_ns + own.wait_ns;
    const parts = [total, own.work_ns, own.queue_ns, own.timer_ns, own.wait_ns].map((ns) => el("td", {}, ns > 0 ? duration(ns / 1e6) : "\u2013"));
    return el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name" }, name)), el("td", {}, calls), el("td", {}, share(total)), parts);
  };
  const [least, most] = split.between_ns;
  const range = (words) => (words(least) === words(most) ? words(least) : words(least) + " to " + words(most));
  const between = el("tr", {}, el("th", { scope: "row" }, "between them"), el("td", {}), el("td", {}, range(share)), el("td", {}, range((ns) => duration(ns / 1e6))), el("td", { colspan: 4 }, "network, queues, other waits"));
  const head = ["service", "requests", "share", "time", "work", "run queue", "timers", "waits"];
  return [
    el("h3", { id: "split" }, "A request of ", el("code", {}, split.point), ", " + duration(split.latency_ns / 1e6)),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-labelledby": "split" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, row(entry, "1", { ...split.entry, wait_ns: 0 }), split.services.map((one) => row(one.service, fixed(one.calls, 2), one)), between))),
    split.caveats.length ? el("ul", { class: "hint" }, split.caveats.map((one) => el("li", {}, one))) : null,
  ];
}

function services() {
  if (data.joint === null) return null;
  return el(
    "section",
    { id: "services-section", "aria-labelledby": "services" },
    el("h2", { id: "services" }, "Services"),
    el("p", { class: "hint" }, "An arrow is what the best target of a service does for the chosen point of " + data.joint.entry + ", by experiment: wider is more. Who calls whom is not recorded. A target without a service is one of " + data.joint.entry + "."),
    el("div", { class: "scroll flame-box", role: "region", tabindex: "0", "aria-label": "Picture of services" }, servicePicture()),
    serviceTable(),
    splitTable(),
  );
}
