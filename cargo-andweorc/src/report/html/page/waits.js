// What the program waited for while nothing was delayed.

/** So many rows: those after them are short. */
const WAITS = 12;

function waits() {
  if (data.waits.length === 0) return null;
  const head = ["wait", "each", "timers and I/O", "other tasks", "run queue", "times"];
  const rows = data.waits.slice(0, WAITS).map((one) => {
    const known = one.outside_ns + one.task_ns + one.queue_ns;
    const part = (ns) => (known > 0 ? percent(ns / known) : "unknown");
    const at = one.file === null || one.line === null ? null : one.file + ":" + one.line;
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "name" }, one.name), at && !one.name.endsWith(at) ? place(at, one.editor) : null),
      el("td", {}, duration(one.total_ns / one.count / 1e6)),
      [one.outside_ns, one.task_ns, one.queue_ns].map((ns) => el("td", {}, part(ns))),
      el("td", {}, String(one.count)),
    );
  });
  return el(
    "section",
    { "aria-labelledby": "waits" },
    el("h2", { id: "waits" }, "Where it waited longest"),
    el("p", { class: "hint" }, "Before the first experiment, whether or not it was tested. To test one, name it: ", el("code", {}, "--targets wait:NAME"), "."),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Waits" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows))),
  );
}
