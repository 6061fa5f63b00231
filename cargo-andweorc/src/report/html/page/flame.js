// Flame graphs: of a tree of stacks, whose times are split by state, and a table of the same.

/** What the states of wall time mean, by their number. */
const STATE_HINTS = [
  "polled, or running on a plain thread",
  "ready, but not yet polled",
  "waiting for the world outside: sockets, and timers where they can't be told from them",
  "waiting for a timer",
  "waiting for another task or thread of the program",
  "waiting, and nobody saw for what: the task is not profiled, or the wait had not ended",
];

/**
 * Graphs by the names of their tabs, without those of which nothing was recorded. Of each its stacks with all that is inside
 * of them, the whole first; the states that their times are split by, each with a colour; and the words around it.
 */
const graphs = data.wall === null ? {} : { flame: wallGraph(data.wall) };

/** The graph that is shown, or was last; null where there is none. */
let graph = graphs.flame ?? null;

/** Its frames. */
let flame = graph && graph.frames;

/** Where wall time went, by stacks of spans. */
function wallGraph({ real_ms, states, stacks, merged, unseen }) {
  return {
    frames: frames("all", stacks, states),
    states: states.map((name, i) => ({ name, hint: STATE_HINTS[i], colour: i })),
    title: "Where wall time went",
    label: "Flame graph of wall time",
    search: "Span, task, file",
    about: "The requests of " + duration(real_ms) + " before the first experiment, by their spans. The width of a box is wall time; its band says what of it was running and what waiting. Time that several parts of a request share is split evenly; while one runs, none waits. Tasks stand for what they did outside of all spans.",
    ended: true,
    controls: () => null,
    lost: [
      merged ? merged + " spans could not be told apart and are counted as the stack around them." : null,
      unseen ? unseen + " requests were not recorded, since too many were open." : null,
    ],
  };
}

/** Height of a box, and of the band in it that is split by state. */
const BOX = 30;
const BAND = 8;

/** Boxes that are narrower than this part of the whole are left out. */
const NARROWEST = 0.0008;

/** A box needs so many pixels for a name. */
const NAMED_WIDTH = 28;

/** Rows of the table at once. */
const TABLE_ROWS = 40;

/** The frames as a tree: each with its children, widest first, its depth, its own and its whole time by state. */
function frames(whole, stacks, states) {
  const none = states.map(() => 0);
  const root = { index: 0, name: whole, kind: null, place: null, targets: [], parent: null, children: [], own: none, whole: [...none], count: 0, wakers: [], path: "" };
  const all = [root];
  for (const one of stacks) {
    const parent = one.parent === null ? root : all[one.parent + 1];
    const frame = { ...one, index: all.length, parent, children: [], own: one.states, whole: [...one.states] };
    frame.path = (parent === root ? "" : parent.path + " > ") + (one.kind ?? "") + " " + one.name;
    parent.children.push(frame);
    all.push(frame);
  }
  const sum = (times) => times.reduce((a, b) => a + b, 0);
  for (const frame of [...all].reverse()) {
    frame.total = sum(frame.whole);
    if (frame.parent) frame.whole.forEach((ns, i) => (frame.parent.whole[i] += ns));
  }
  for (const frame of all) {
    frame.depth = frame.parent ? frame.parent.depth + 1 : 0;
    frame.children.sort((a, b) => b.total - a.total || a.index - b.index);
    frame.text = (frame.kind + " " + frame.name + " " + (frame.place ?? "")).toLowerCase();
  }
  return all;
}

const nanos = (ns) => duration(ns / 1e6);

/** The frame with the most time that is this target's; null where it has none. */
function frameOf(target) {
  if (!graphs.flame) return null;
  const own = graphs.flame.frames.filter((frame) => frame.targets.includes(target.index));
  return own.reduce((best, frame) => (best && best.total >= frame.total ? best : frame), null);
}

/** A link to a target's place in the flame graph, where it has one. */
function flameLink(target, text) {
  const frame = frameOf(target);
  if (frame === null) return null;
  const go = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showFrame("flame", frame);
  };
  return el("a", { class: "to-flame", href: address(state.target, "flame", frame), onclick: go, "aria-label": target.name + " in the flame graph" }, text);
}

/** The frames in view from `zoomed` on, each with its left edge and its width, fractions of the whole. Those around `zoomed` are as wide as it. */
function placed(zoomed) {
  const boxes = [];
  for (let frame = zoomed.parent; frame; frame = frame.parent) boxes.unshift({ frame, x: 0, width: 1, around: true });
  const place = (frame, x) => {
    const width = zoomed.total > 0 ? frame.total / zoomed.total : 0;
    if (width < NARROWEST && frame !== zoomed) return;
    boxes.push({ frame, x, width });
    for (const child of frame.children) {
      place(child, x);
      x += zoomed.total > 0 ? child.total / zoomed.total : 0;
    }
  };
  place(zoomed, 0);
  return boxes;
}

/** Whether a frame is what is searched for. */
function found(frame) {
  const words = state.frames.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length > 0 && frame.parent !== null && words.every((word) => frame.text.includes(word));
}

/** The states of a frame in words, the longest first, without those that have no time. */
function spoken(times) {
  const all = times.reduce((a, b) => a + b, 0);
  const parts = times.map((ns, i) => [graph.states[i].name, ns]).filter(([, ns]) => ns > 0);
  return parts.sort((a, b) => b[1] - a[1]).map(([name, ns]) => name + " " + percent(ns / all)).join(", ");
}

const zoomedFrame = () => flame[state.frame] ?? flame[0];

/** The chart. `focus` is the frame that can be reached with the Tab key. */
function flameChart() {
  const zoomed = zoomedFrame();
  const boxes = placed(zoomed);
  const rows = Math.max(...boxes.map((box) => box.frame.depth)) + 1;
  const chart = svg("svg", { id: "flame", class: "flame", role: "tree", "aria-label": graph.label, height: rows * BOX, width: "100%" }, boxes.map((box) => flameBox(box, box.frame === zoomed)));
  chart.addEventListener("keydown", (event) => flameKey(event, boxes));
  return chart;
}

function flameBox({ frame, x, width, around }, isZoomed) {
  const matches = found(frame);
  let at = 0;
  const bands = frame.whole.map((ns, i) => {
    const part = frame.total > 0 ? ns / frame.total : 0;
    const band = part > 0 ? svg("rect", { class: "state-" + graph.states[i].colour, x: at * 100 + "%", y: BOX - BAND - 1, width: part * 100 + "%", height: BAND }) : null;
    at += part;
    return band;
  });
  const share = percent(frame.total / Math.max(flame[0].total, 1));
  const says = frame.name + ", " + nanos(frame.total) + ", " + share + " of all: " + spoken(frame.whole);
  const box = svg(
    "svg",
    {
      class: "frame" + (around ? " around" : "") + (matches ? " found" : ""), x: x * 100 + "%", y: frame.depth * BOX, width: width * 100 + "%", height: BOX, "data-frame": frame.index,
      role: "treeitem", "aria-level": frame.depth + 1, "aria-label": says, "aria-current": isZoomed ? "true" : null, tabindex: isZoomed ? "0" : "-1",
      onclick: () => zoom(frame), onfocus: () => describeFrame(frame), onpointerenter: () => describeFrame(frame), onpointerleave: () => describeFrame(focusedFrame()),
    },
    svg("title", {}, says),
    svg("rect", { class: "back", width: "100%", height: BOX - 1 }),
    svg("text", { x: 5, y: BOX - BAND - 7, "aria-hidden": "true" }, frame.name),
    bands,
    svg("rect", { class: "edge", width: "100%", height: BOX - 1 }),
  );
  return box;
}

/** Names only where there is room for some letters: their beginnings would be a fence. */
function fitNames() {
  const chart = document.getElementById("flame");
  if (!chart) return;
  for (const box of chart.querySelectorAll(".frame")) {
    box.classList.toggle("narrow", (box.width.baseVal.valueInSpecifiedUnits / 100) * chart.clientWidth < NAMED_WIDTH);
  }
}

const focusedFrame = () => flame[document.activeElement?.dataset?.frame] ?? zoomedFrame();

function flameKey(event, boxes) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const frame = focusedFrame();
  const same = boxes.filter((box) => box.frame.depth === frame.depth).map((box) => box.frame);
  const shown = (one) => one && boxes.some((box) => box.frame === one);
  const to = {
    ArrowDown: () => frame.children.find(shown),
    ArrowUp: () => frame.parent,
    ArrowRight: () => same[same.indexOf(frame) + 1],
    ArrowLeft: () => same[same.indexOf(frame) - 1],
    Home: () => flame[0],
  }[event.key];
  if (to) {
    event.preventDefault();
    const next = to();
    if (shown(next)) focusFrame(next);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    zoom(frame);
  } else if (event.key === "Escape") {
    event.preventDefault();
    zoom(zoomedFrame().parent ?? flame[0]);
  }
}

/** One box at a time can be reached with the Tab key: that which had the focus last. */
function focusFrame(frame) {
  const chart = document.getElementById("flame");
  chart.querySelectorAll("[tabindex='0']").forEach((box) => box.setAttribute("tabindex", "-1"));
  const box = chart.querySelector(`[data-frame="${frame.index}"]`);
  box.setAttribute("tabindex", "0");
  box.focus({ preventScroll: true });
}

/** Zooms to a frame, at an address of its own. */
function zoom(frame) {
  if (state.frame !== frame.index) {
    state.frame = frame.index;
    history.pushState(null, "", address());
    drawFlame();
  }
  focusFrame(frame);
}

function searchFrames(text) {
  state.frames = text.trim();
  history.replaceState(null, "", address());
  drawFlame();
}

/** Draws the chart anew, with what goes with it. */
function drawFlame() {
  document.getElementById("flame").replaceWith(flameChart());
  const matches = flame.filter(found);
  const outermost = matches.filter((frame) => {
    for (let around = frame.parent; around; around = around.parent) if (matches.includes(around)) return false;
    return true;
  });
  const part = outermost.reduce((sum, frame) => sum + frame.total, 0) / Math.max(flame[0].total, 1);
  document.getElementById("flame-found").textContent = state.frames ? matches.length + (matches.length === 1 ? " stack has" : " stacks have") + " it, with " + percent(part) + " of the time" : "";
  document.getElementById("flame-out").disabled = state.frame === 0;
  document.getElementById("flame-table").replaceChildren(flameTable(TABLE_ROWS));
  fitNames();
  describeFrame(zoomedFrame());
}

/** Says in words what a box is. */
function describeFrame(frame) {
  const of = document.getElementById("flame-frame");
  if (!of) return;
  const own = frame.own.reduce((a, b) => a + b, 0);
  const line = (name, times) => el("p", {}, el("b", {}, name + " " + nanos(times.reduce((a, b) => a + b, 0))), times.some((ns) => ns > 0) ? ": " + spoken(times) : null);
  const wakers = frame.wakers.slice(0, 4).map(([name, ns]) => name + " " + nanos(ns));
  const ended = frame.kind === "task" ? frame.count + " waits ended" : frame.count + " ended, each with " + nanos(frame.total / frame.count) + " of the wall time of its request";
  const says = [
    el("h3", {}, frame.kind ? el("span", { class: "kind" }, frame.kind) : null, " ", el("span", { class: "name" }, frame.name), frame.place ? el("span", { class: "place" }, frame.place) : null),
    line("In all", frame.whole),
    frame.children.length && frame.parent && own > 0 ? line("Itself", frame.own) : null,
    wakers.length ? el("p", {}, "Woken by " + wakers.join(", ")) : null,
    frame.count ? el("p", { class: "hint" }, ended) : null,
  ];
  of.replaceChildren(...says.filter(Boolean));
}

/** The first stacks inside of what is zoomed to, as a table. */
function flameTable(many) {
  const rows = [];
  const list = (frame) => {
    rows.push(frame);
    frame.children.forEach(list);
  };
  list(zoomedFrame());
  const top = zoomedFrame().depth;
  const row = (frame) => {
    const name = el("th", { scope: "row" }, el("span", { class: "name" }, frame.name));
    name.style.paddingLeft = Math.min(frame.depth - top, 12) * 0.9 + "rem";
    return el("tr", {}, name, el("td", {}, nanos(frame.total)), frame.whole.map((ns) => el("td", {}, ns > 0 ? nanos(ns) : "\u2013")), graph.ended ? el("td", {}, frame.count ? String(frame.count) : "") : null);
  };
  const head = ["stack", "in all", ...graph.states.map((one) => one.name), graph.ended ? "ended" : null].filter(Boolean);
  const left = rows.length - many;
  const more = () => document.getElementById("flame-table").replaceChildren(flameTable(many + 5 * TABLE_ROWS));
  return el(
    "div",
    {},
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": graph.title }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows.slice(0, many).map(row)))),
    left > 0 ? el("button", { type: "button", class: "more", onclick: more }, "Show more (" + left + " left)") : null,
  );
}

/** The states of a graph, or others, and their colours. */
function legend(states) {
  return el("ul", { class: "legend", "aria-label": "Colours" }, states.map(({ name, hint, colour }) => el("li", { title: hint }, svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: "state-" + colour, width: 14, height: 14, rx: 2 })), name)));
}

/** The graph that is shown, with what goes around it. */
function graphView() {
  const { states, lost } = graph;
  const search = el("input", { type: "search", id: "flame-search", placeholder: graph.search, value: state.frames, autocomplete: "off", spellcheck: "false", oninput: (event) => searchFrames(event.target.value) });
  return [
    el("h2", {}, graph.title),
    el("p", { class: "hint" }, graph.about),
    el("div", { class: "controls flame-controls" }, graph.controls(), el("label", { class: "field grow" }, el("span", {}, "Search"), search), el("button", { type: "button", id: "flame-out", class: "quiet", onclick: () => zoom(flame[0]) }, "Zoom out")),
    el("p", { id: "flame-found", class: "status", role: "status" }),
    legend(states),
    el("div", { class: "flame-box" }, svg("svg", { id: "flame" })),
    el("p", { class: "hint keys" }, "Click or Enter zooms, Escape zooms out, arrows move."),
    el("div", { id: "flame-frame", class: "card" }),
    lost.some(Boolean) ? el("p", { class: "hint" }, lost.filter(Boolean).join(" ")) : null,
    el("details", {}, el("summary", {}, el("h2", {}, "As a table"), " each row with all that is inside of it"), el("div", { id: "flame-table" })),
  ].filter(Boolean);
}

/** The tabs of the page and their names: what would help, where time went, and single requests. None where nothing of that is known. */
const TABS = [["answer", "What would help"], ["flame", "Flame graph"], ["cpu", "CPU"], ["requests", "Requests"]].filter(([name]) => hasTab(name));

function hasTab(name) {
  const hasRequests = data.requests !== null && data.requests.kinds.length > 0;
  const hasViews = Object.keys(graphs).length > 0 || data.cpu !== null || hasRequests;
  return hasViews && (name === "flame" ? graphs.flame !== undefined : name === "requests" ? hasRequests : true);
}

function tabs() {
  const one = ([name, text]) =>
    el("button", { type: "button", id: "to-" + name, role: "tab", "aria-controls": "tab-" + name, onclick: () => showTab(name), onkeydown: tabKey }, text);
  return el("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, TABS.map(one));
}

/** The panels of all tabs but the first: the one that is shown is filled then. */
function panels() {
  return TABS.slice(1).map(([name]) => el("section", { id: "tab-" + name, role: "tabpanel", "aria-labelledby": "to-" + name, hidden: true }));
}

function tabKey(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...document.querySelectorAll("[role=tab]")];
  const other = all[(all.indexOf(event.currentTarget) + step + all.length) % all.length];
  other.click();
  other.focus();
}

/** Makes this the graph that is shown. Each keeps its frame and its search. */
function chooseGraph(name) {
  if (graph === graphs[name]) return;
  if (graph) graph.kept = [state.frame, state.frames];
  graph = graphs[name];
  flame = graph.frames;
  [state.frame, state.frames] = graph.kept ?? [0, ""];
}

/** Shows a tab, at an address of its own. */
function showTab(name) {
  state.tab = name;
  if (graphs[name]) chooseGraph(name);
  if (location.hash !== address()) history.pushState(null, "", address());
  switchTab();
}

/** Shows a frame in the graph of this name. */
function showFrame(name, frame) {
  chooseGraph(name);
  state.frame = frame.index;
  showTab(name);
  document.getElementById("to-" + name).scrollIntoView({ block: "start" });
}

/** Shows the tab that the state says. */
function switchTab() {
  for (const [name] of TABS) {
    const chosen = state.tab === name;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    const panel = document.getElementById("tab-" + name);
    panel.hidden = !chosen;
    if (name !== "answer") panel.replaceChildren(...(!chosen ? [] : name === "requests" ? requestsView() : graphs[name] ? graphView() : noSamples()));
  }
  if (graphs[state.tab]) drawFlame();
  if (state.tab === "requests") drawRequests();
}
