// Events of the processor by target, where they were counted.

/** `3.21 G`, `45.6 k` */
function many(x) {
  const units = ["", " k", " M", " G"];
  let unit = 0;
  for (; x >= 1000 && unit < units.length - 1; unit++) x /= 1000;
  return fixed(x, unit === 0 || x >= 100 ? 0 : x >= 10 ? 1 : 2) + units[unit];
}

function events() {
  if (data.events === null) return null;
  const { events: counted, targets, losses, seconds } = data.events;
  const withIpc = targets.some((one) => one.ipc !== null);
  const part = (share) => el("td", {}, share === null ? "too few" : percent(share));
  const rows = targets.map((one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "name" }, one.label), one.place ? place(one.place, one.editor) : null),
      withIpc ? el("td", {}, one.ipc === null ? "too few" : fixed(one.ipc, 2)) : null,
      one.shares.map(part),
    ),
  );
  const head = ["target", withIpc ? "IPC" : null, ...counted.map(({ name }) => name)].filter(Boolean);
  const rates = counted.map(({ name, per_s }) => many(per_s) + " " + name).join(", ");
  return el(
    "section",
    { "aria-labelledby": "events" },
    el("h2", { id: "events" }, "What the processor counted"),
    el("p", { class: "hint" }, "In user space, over " + fixed(seconds, 1) + " s before the first experiment: " + rates + " a second. Of each the part that happened while the target was the innermost span or task, or the innermost function in scope. IPC is instructions a cycle."),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Events" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows))),
    losses.length ? el("p", { class: "hint" }, losses.join("; ") + ".") : null,
  );
}
