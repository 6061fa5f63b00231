// The table of experiments.

/** Rows made at once: a long run has thousands. */
const ROWS = 50;

function experiments(shown, open) {
  const targets = new Set(shown.map((target) => target.index));
  const all = data.experiments.filter((one) => (one.target === null ? !state.query : targets.has(one.target)));
  const body = el("tbody", {});
  const more = el("button", { type: "button", class: "more", onclick: () => add() });
  let made = 0;
  const add = () => {
    body.append(...all.slice(made, made + ROWS).map(experimentRow));
    made = Math.min(made + ROWS, all.length);
    more.textContent = "Show more (" + (all.length - made) + " left)";
    more.hidden = made === all.length;
  };
  const probes = all.some((one) => one.what === "probe") ? el("p", { class: "hint" }, "In a probe the program is delayed as a whole, to see whether the load waits for it.") : null;
  const head = ["#", "at", "target", "faster by", "length", "delay", measure(), "effect", ""];
  const table = el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Experiments" }, el("table", { class: "experiments" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), body));
  const details = el("details", { id: "experiments" }, el("summary", {}, el("h2", {}, "Experiments"), " " + all.length + " of " + data.experiments.length + ", baselines" + (data.experiments.some((one) => one.what === "probe") ? " and probes" : "") + " included"), probes, table, more);
  // The rows are made when it is opened for the first time.
  details.addEventListener("toggle", () => made === 0 && add());
  details.open = open;
  return details;
}

function experimentRow(one) {
  const target = one.target === null ? null : data.targets[one.target];
  const effect = target && one.discarded === null ? effectOfOne(one) : null;
  const number = (data.runs > 1 ? one.run + 1 + "/" : "") + one.seq;
  return el(
    "tr",
    { class: one.discarded !== null ? "discarded" : one.what === "target" ? null : "baseline" },
    el("td", {}, number),
    el("td", {}, fixed(one.start_ms / 1000, 1) + " s"),
    el("td", {}, target ? label(target) : one.what === "target" ? "unknown" : one.what),
    el("td", {}, one.speedup > 0 ? percent(one.speedup) : ""),
    el("td", {}, duration(one.real_ms)),
    el("td", {}, one.delay_ms ? duration(one.delay_ms) : ""),
    el("td", {}, quantity(state.metric, one.values[state.point][METRIC_INDEX[state.metric]])),
    el("td", {}, effect === null ? "" : change(effect)),
    el("td", {}, one.discarded !== null ? "left out: " + one.discarded : ""),
  );
}
