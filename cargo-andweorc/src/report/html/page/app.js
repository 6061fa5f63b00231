// The page: head, controls, and what follows from them.

function head() {
  const held = (what) => data.experiments.filter((one) => one.what === what).length;
  const spoiled = data.experiments.filter((one) => one.spoiled !== null).length;
  const facts = [
    held("target") + " experiments and " + held("baseline") + " baselines in " + duration(data.real_ms),
    spoiled ? spoiled + " left out, spoiled by other work" : null,
    data.runs > 1 ? data.runs + " runs" : null,
    data.host + ", " + data.cores + " cores",
    data.started_ms ? new Date(data.started_ms).toLocaleString() : null,
  ];
  return el("header", { class: "top" }, el("p", { class: "mark" }, "andweorc"), el("h1", {}, data.program), el("p", { class: "hint" }, facts.filter(Boolean).join(" \u00b7 ")));
}

/** The answer in one sentence. */
function lead() {
  const best = data.targets[0];
  const point = el("code", {}, data.points[by.point_index].name);
  if (!best || best.verdict !== "matters") return el("p", { class: "lead" }, "Nothing that was tested is known to make ", point, " faster.");
  const effect = best.effects.filter((e) => e.point === by.point_index && e.metric === by.metric).at(-1);
  const burner = data.targets.find((t) => t.verdict === "nothing" && t.share >= 0.1);
  return el(
    "p",
    { class: "lead" },
    "If ", el("code", {}, best.name), " were " + percent(effect.speedup) + " faster, the " + MEASURE + " of ", point, " would change by ",
    el("strong", {}, change(effect.pct)), " " + interval(effect.low, effect.high) + ".",
    burner ? [" ", el("code", {}, burner.name), ", with " + percent(burner.share) + " of the CPU, would change nothing."] : null,
  );
}

/** Radio buttons side by side. */
function choice(name, legend, options, chosen, choose) {
  return el(
    "fieldset",
    { class: "choice" },
    el("legend", {}, legend),
    options.map(([value, text]) =>
      el("label", {}, el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }), el("span", {}, text)),
    ),
  );
}

function controls() {
  const set = (change) => (value) => {
    change(value);
    show();
  };
  const points = el(
    "label",
    { class: "field" },
    el("span", {}, "Point"),
    el(
      "select",
      { id: "point", onchange: (event) => choosePoint(Number(event.target.value)) },
      data.points.map((p, i) => el("option", { value: i, selected: i === state.point }, p.label)),
    ),
  );
  const search = el("input", {
    type: "search", id: "search", placeholder: "Target, file, verdict  (press /)", value: state.query, autocomplete: "off", spellcheck: "false",
    oninput: (event) => set((v) => (state.query = v.trim()))(event.target.value),
  });
  return el(
    "form",
    { class: "controls", role: "search", onsubmit: (event) => event.preventDefault() },
    data.points.length > 1 ? points : null,
    metrics().length > 1 ? choice("metric", "Metric", metrics().map((m) => [m, METRICS[m].replace(" latency", "")]), state.metric, set((v) => (state.metric = v))) : null,
    speedups.length > 1 ? choice("speedup", "Faster by", speedups.map((s) => [String(s), percent(s)]), String(state.speedup), set((v) => (state.speedup = Number(v)))) : null,
    el("label", { class: "field grow" }, el("span", {}, "Search"), search),
  );
}

/** Another point may lack the metric, so that the controls are made anew. */
function choosePoint(index) {
  state.point = index;
  if (!metrics().includes(state.metric)) state.metric = usualMetric();
  document.querySelector(".controls").replaceWith(controls());
  document.getElementById("point").focus();
  show();
}

/** Shows what the state says. */
function show() {
  const shown = ranked();
  const open = document.getElementById("experiments")?.open ?? false;
  document.getElementById("content").replaceChildren(ranking(shown), cards(shown), experiments(shown, open));
  document.getElementById("status").textContent = shown.length + " of " + data.targets.length + " targets";
  history.replaceState(null, "", address());
}

/** Brings a target's card into view. */
function visit(index) {
  const card = document.getElementById("target-" + index);
  if (!card) return;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function onKey(event) {
  const search = document.getElementById("search");
  const typing = event.target.matches("input[type=search], select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = state.query = "";
    show();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && event.target.matches("a.row")) {
    const rows = [...document.querySelectorAll("a.row")];
    const next = rows[rows.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }
}

function start() {
  document.title = data.program + " - andweorc";
  const page = document.getElementById("page");
  const notes = data.notes.length ? el("section", { class: "notes", "aria-label": "Notes" }, el("h2", {}, "Notes"), el("ul", {}, data.notes.map((note) => el("li", {}, note)))) : null;
  const foot = el("footer", {}, "Intervals are 95 %. Time is virtual: the delays of the experiments are taken out of every number. Shares of CPU overlap where spans nest.");
  if (data.nothing !== null || data.targets.length === 0) {
    page.append(head(), el("main", {}, el("p", { class: "lead" }, data.nothing ?? "No target was tested."), notes), foot);
    return;
  }
  const asked = readState();
  const warning = data.warning ? el("p", { class: "warning", role: "note" }, data.warning) : null;
  // Where the answer would mean nothing the warning takes its place.
  const answer = warning && by.metric === "throughput" ? null : lead();
  page.append(head(), el("main", {}, warning, answer, controls(), el("p", { id: "status", class: "status", role: "status" }), el("div", { id: "content" }), waits(), notes), foot);
  show();
  if (asked !== null) visit(Number(asked));
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", (event) => {
    const row = event.target.closest("a.row");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    visit(Number(row.dataset.target));
  });
  addEventListener("hashchange", () => {
    if (location.hash === "#ranking") {
      // The skip link: the browser has moved the focus, and the view stays.
      history.replaceState(null, "", address());
      return;
    }
    const target = readState();
    document.querySelector(".controls").replaceWith(controls());
    show();
    if (target !== null) visit(Number(target));
  });
}

start();
