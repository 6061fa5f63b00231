// What the targets allocated while nothing was delayed.

/** So many rows: those after them are small. */
const ALLOCATIONS = 20;

/** So many threads are told of what is outside of all targets. */
const THREADS = 4;

/** `12.1 KiB` */
function bytes(x) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; x >= 1024 && unit < units.length - 1; unit++) x /= 1024;
  return fixed(x, unit === 0 || x >= 100 ? 0 : x >= 10 ? 1 : 2) + " " + units[unit];
}

/** The threads that allocate outside of all targets, by samples. */
function threads(one) {
  const shown = one.threads.slice(0, THREADS).map((it) => (it.name || "no name") + " " + percent(it.part));
  return shown.length > 0 ? el("span", { class: "place" }, "threads: " + shown.join(", ")) : null;
}

/** A table of allocations that may be wider than the page. */
function allocationTable(label, head, rows) {
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows)));
}

/** The lines that allocate, by samples; nothing where none were taken. */
function allocatingLines() {
  if (data.allocation_lines.length === 0) return [];
  const rows = data.allocation_lines.map((one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "name" }, one.function), one.place ? place(one.place, one.editor) : null),
      [bytes(one.bytes_per_s), fixed(one.count_per_s, one.count_per_s < 10 ? 1 : 0), percent(one.part), String(one.samples)].map((text) => el("td", {}, text)),
    ),
  );
  const lost = data.allocations_lost > 0 ? " " + data.allocations_lost + " samples were lost, or could not be told apart." : "";
  return [
    el("h3", {}, "Lines that allocate"),
    el("p", { class: "hint" }, "By samples, one in about 512 KiB, before the first experiment: the innermost line of the program's own code." + lost),
    allocationTable("Lines that allocate", ["line", "bytes/s", "allocations/s", "of all bytes", "samples"], rows),
  ];
}

function allocations() {
  if (data.allocations.length === 0) return null;
  const head = ["target", "bytes/s", "allocations/s", "live", "peak", "churn"];
  const rows = data.allocations.slice(0, ALLOCATIONS).map((one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "name" }, one.label), one.place ? place(one.place, one.editor) : null, threads(one)),
      [bytes(one.bytes_per_s), fixed(one.count_per_s, one.count_per_s < 10 ? 1 : 0), bytes(one.live_bytes), bytes(one.peak_bytes)].map((text) => el("td", {}, text)),
      el("td", {}, one.churn === null ? "unknown" : percent(one.churn)),
    ),
  );
  return el(
    "section",
    { "aria-labelledby": "allocations" },
    el("h2", { id: "allocations" }, "What it allocated"),
    el("p", { class: "hint" }, "While nothing was delayed, by the innermost target. Churn is the part of the bytes that was freed in the poll, or the span around all others, in which it was allocated."),
    allocationTable("Allocations", head, rows),
    allocatingLines(),
  );
}
