// Single requests, as they went: for each kind three of them, as a chart of their spans over time.

/** The kinds of requests; none where nothing was recorded. */
const requestKinds = data.requests === null ? [] : data.requests.kinds;

/** Rows of a chart at once. */
const TRACE_ROWS = 30;

/** An interval that is narrower than this is drawn so wide, in percent of the whole. */
const THINNEST = 0.15;

const EXAMPLE_NAMES = { p50: "A usual one", p99: "A slow one", max: "The slowest" };

const exampleLength = (example) => (example.spans.length ? example.spans[0].end : 0);

/** A link from the chosen point to its requests, where there are some. */
function requestsLink() {
  const kind = requestKinds.findIndex((one) => one.point === state.point);
  if (kind < 0 || data.points[state.point].kind !== "latency") return null;
  const lengths = requestKinds[kind].examples.map((one) => one.of + " " + nanos(exampleLength(one))).join(", ");
  const go = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    state.request = kind;
    showTab("requests");
    document.getElementById("to-requests").focus();
  };
  return el("p", { class: "hint" }, el("a", { class: "to-flame", id: "link-requests", href: requestsAddress(kind), onclick: go }, "Single requests, span by span"), ": " + lengths + ", before the first experiment");
}

/** The address of a kind of request. */
function requestsAddress(kind) {
  const say = new URLSearchParams();
  say.set("request", requestKey(kind));
  return "#" + say.toString();
}

const requestKey = (kind) => requestKinds[kind].name + " " + (requestKinds[kind].place ?? "");

/** The examples of a kind of request, with what goes around them. */
function requestsView() {
  const { untraced } = data.requests;
  const options = requestKinds.map((kind, i) => el("option", { value: i }, kind.name + " (" + kind.count + ")"));
  const choose = (event) => {
    state.request = Number(event.target.value);
    history.pushState(null, "", address());
    drawRequests();
  };
  return [
    el("h2", {}, "Single requests"),
    el("p", { class: "hint" }, "Of each kind of request three that ended before the first experiment, as they went. A row is a span, and its colours are what it did itself; where it has none, spans inside of it are open."),
    requestKinds.length > 1 ? el("div", { class: "controls flame-controls" }, el("label", { class: "field grow" }, el("span", {}, "Request"), el("select", { id: "request", onchange: choose }, options))) : null,
    legend(colours(wallStates(data.wall.states))),
    el("div", { id: "request-examples" }),
    el("p", { class: "hint keys" }, "Arrows move from span to span."),
    untraced ? el("p", { class: "hint" }, untraced + " requests could be no example: there were too many kinds of them, or no memory was left for more.") : null,
  ].filter(Boolean);
}

/** Draws the examples of the kind that is chosen. */
function drawRequests() {
  const kind = requestKinds[state.request];
  const select = document.getElementById("request");
  if (select) select.value = String(state.request);
  document.getElementById("request-examples").replaceChildren(...kind.examples.map((example, i) => exampleCard(kind, example, i)));
}

function exampleCard(kind, example, index) {
  const { merged, left_out } = example;
  const lost = [
    merged ? merged + " short intervals are joined with those beside them." : null,
    left_out ? left_out + " more spans are told as the span around them." : null,
  ].filter(Boolean);
  const stands = example.of === "max" ? "the slowest of " + kind.count : example.of + " of " + kind.count + " is " + nanos(example.about);
  const told = el("p", { class: "trace-told", "aria-live": "off" });
  const table = el("div", {});
  const details = el("details", {}, el("summary", {}, "As a table"), table);
  details.addEventListener("toggle", () => details.open && !table.firstChild && table.append(traceTable(example)));
  return el(
    "article",
    { class: "card trace-card", "aria-label": EXAMPLE_NAMES[example.of] + ", " + kind.name },
    el("h3", {}, EXAMPLE_NAMES[example.of], " ", el("span", { class: "kind" }, stands)),
    el("p", { class: "why" }, example.words),
    trace(example, index, told, TRACE_ROWS),
    told,
    lost.length ? el("p", { class: "hint" }, lost.join(" ")) : null,
    details,
  );
}

/** The spans in the order of a tree, with their depth. */
function traceRows(example) {
  const children = example.spans.map(() => []);
  const roots = [];
  example.spans.forEach((span, i) => (span.parent === null ? roots : children[span.parent]).push(i));
  const rows = [];
  const stack = roots.reverse().map((i) => [i, 0]);
  while (stack.length) {
    const [i, depth] = stack.pop();
    rows.push({ span: example.spans[i], depth });
    for (const child of children[i].reverse()) stack.push([child, depth + 1]);
  }
  return rows;
}

/** The chart of an example. One row at a time can be reached with the Tab key. */
function trace(example, index, told, many) {
  const rows = traceRows(example);
  const shown = rows.slice(0, many);
  const left = rows.length - shown.length;
  const whole = Math.max(1, ...example.spans.map((span) => span.end));
  const tree = el("div", { class: "trace", role: "tree", "aria-label": EXAMPLE_NAMES[example.of] + ", spans over " + nanos(whole), id: "trace-" + index }, traceScale(whole), shown.map((row, i) => traceRow(row, whole, told, i === 0)));
  tree.addEventListener("keydown", traceKey);
  const more = () => {
    const next = trace(example, index, told, many + 5 * TRACE_ROWS);
    box.replaceWith(next);
    next.querySelector("[role=treeitem]").focus();
  };
  const box = el("div", {}, tree, left > 0 ? el("button", { type: "button", class: "more", onclick: more }, "Show more spans (" + left + " left)") : null);
  return box;
}

/** Times along the top. */
function traceScale(whole) {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => el("span", {}, part === 0 ? "0" : nanos(part * whole)));
  return el("div", { class: "trace-row scale", "aria-hidden": "true" }, el("span", {}), el("span", { class: "trace-marks" }, marks));
}

function traceRow({ span, depth }, whole, told, first) {
  const at = (ns) => (ns / whole) * 100;
  const bars = span.intervals.map(([number, begin, end]) => svg("rect", { class: "state-" + number, x: at(begin) + "%", y: 3, width: Math.max(at(end - begin), THINNEST) + "%", height: 12 }));
  const says = spanWords(span);
  const tell = () => (told.textContent = says);
  const name = el("span", { class: "trace-name name" }, span.name);
  name.style.paddingLeft = Math.min(depth, 12) * 0.8 + "rem";
  return el(
    "div",
    { class: "trace-row", role: "treeitem", "aria-level": depth + 1, "aria-label": says, title: says, tabindex: first ? "0" : "-1", onfocus: tell, onpointerenter: tell },
    name,
    svg("svg", { class: "trace-bars", width: "100%", height: 18, "aria-hidden": "true" }, svg("rect", { class: "trace-open", x: at(span.begin) + "%", y: 8, width: Math.max(at(span.end - span.begin), THINNEST) + "%", height: 2 }), bars),
  );
}

/** The times of a span by state, and by who ended its waits for other tasks. */
function spanTimes(span) {
  const states = data.wall.states.map(() => 0);
  const wakers = new Map();
  for (const [number, begin, end, by] of span.intervals) {
    states[number] += end - begin;
    if (by !== null) wakers.set(by, (wakers.get(by) ?? 0) + end - begin);
  }
  return { states, wakers: [...wakers].sort((a, b) => b[1] - a[1]) };
}

/** A span in words. */
function spanWords(span) {
  const { states, wakers } = spanTimes(span);
  const times = states.map((ns, i) => [data.wall.states[i], ns]).filter(([, ns]) => ns > 0);
  const own = times.length ? ". Itself: " + times.map(([name, ns]) => name + " " + nanos(ns)).join(", ") : "";
  const woken = wakers.length ? ". Woken by " + wakers.slice(0, 4).map(([by, ns]) => by + " " + nanos(ns)).join(", ") : "";
  return span.name + ": " + nanos(span.end - span.begin) + ", from " + nanos(span.begin) + " to " + nanos(span.end) + own + woken;
}

function traceKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const rows = [...event.currentTarget.querySelectorAll("[role=treeitem]")];
  const at = rows.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  const next = rows[to];
  if (!next) return;
  rows[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function traceTable(example) {
  const row = ({ span, depth }) => {
    const { states } = spanTimes(span);
    const name = el("th", { scope: "row" }, el("span", { class: "name" }, span.name), place(span.place, null));
    name.style.paddingLeft = Math.min(depth, 12) * 0.9 + "rem";
    return el("tr", {}, name, el("td", {}, nanos(span.begin)), el("td", {}, nanos(span.end - span.begin)), states.map((ns) => el("td", {}, ns > 0 ? nanos(ns) : "\u2013")));
  };
  const heads = ["span", "begin", "length", ...data.wall.states];
  return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Spans of the request" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, traceRows(example).map(row))));
}
