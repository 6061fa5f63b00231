// Where time went: the graphs of the page, and the tabs that show them.

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

/** The states of wall time, each with what it means and the number of its colour. */
function wallStates(states) {
  return states.map((name, i) => ({ name, hint: STATE_HINTS[i], colour: i }));
}

/** Where wall time went, by stacks of spans. */
function wallGraph({ real_ms, states, stacks, losses }) {
  return {
    frames: frames("all", stacks, states),
    states: wallStates(states),
    title: "Where wall time went",
    label: "Flame graph of wall time",
    wanted: "Span, task, file",
    about: "The requests of " + duration(real_ms) + " before the first experiment, by their spans. The width of a box is wall time; its band says what of it was running and what waiting. Time that several parts of a request share is split evenly; while one runs, none waits. Tasks stand for what they did outside of all spans.",
    ended: true,
    controls: () => null,
    losses,
  };
}

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

/** How long a box was in each state, as a band in it. */
function stateBand(frame) {
  let at = 0;
  return frame.whole.map((ns, i) => {
    const part = frame.total > 0 ? ns / frame.total : 0;
    const band = part > 0 ? svg("rect", { class: "state-" + graph.states[i].colour, x: at * 100 + "%", y: BOX - BAND - 1, width: part * 100 + "%", height: BAND }) : null;
    at += part;
    return band;
  });
}

/** What the flame graph draws and says of a frame: that of the graph that is shown. */
const look = {
  get name() {
    return graph.label;
  },
  tone: () => "",
  title: (frame) => frame.name,
  inside: stateBand,
  says: (frame) => spoken(frame.whole),
  describe: describeStates,
  get columns() {
    return ["in all", ...graph.states.map((one) => one.name), ...(graph.ended ? ["ended"] : [])];
  },
  cells: (frame) => [nanos(frame.total), ...frame.whole.map((ns) => (ns > 0 ? nanos(ns) : "\u2013")), ...(graph.ended ? [frame.count ? String(frame.count) : ""] : [])],
};

/** The states of a frame in words, the longest first, without those that have no time. */
function spoken(times) {
  const all = times.reduce((a, b) => a + b, 0);
  const parts = times.map((ns, i) => [graph.states[i].name, ns]).filter(([, ns]) => ns > 0);
  return parts.sort((a, b) => b[1] - a[1]).map(([name, ns]) => name + " " + percent(ns / all)).join(", ");
}

/** What is said of a frame below its name. */
function describeStates(frame) {
  const own = frame.own.reduce((a, b) => a + b, 0);
  const line = (name, times) => el("p", {}, el("b", {}, name + " " + nanos(times.reduce((a, b) => a + b, 0))), times.some((ns) => ns > 0) ? ": " + spoken(times) : null);
  const wakers = frame.wakers.slice(0, 4).map(([name, ns]) => name + " " + nanos(ns));
  const ended = frame.kind === "task" ? frame.count + " waits ended" : frame.count + " ended, each with " + nanos(frame.total / frame.count) + " of the wall time of its request";
  return [
    line("In all", frame.whole),
    frame.children.length && frame.parent && own > 0 ? line("Itself", frame.own) : null,
    wakers.length ? el("p", {}, "Woken by " + wakers.join(", ")) : null,
    frame.count ? el("p", { class: "hint" }, ended) : null,
  ];
}

/** What the colours of these states mean. */
const colours = (states) => states.map(({ name, hint, colour }) => ["state-" + colour, name, hint]);

/** The graph that is shown, with what goes around it. */
function graphView() {
  const { title, about, controls, wanted, states, losses } = graph;
  return [el("h2", {}, title), el("p", { class: "hint" }, about), ...flameParts({ controls: controls(), wanted, colours: colours(states), losses: losses.filter(Boolean) })];
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
    const tab = document.getElementById("to-" + name);
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    const panel = document.getElementById("tab-" + name);
    panel.hidden = !chosen;
    if (name !== "answer") panel.replaceChildren(...(!chosen ? [] : name === "requests" ? requestsView() : graphs[name] ? graphView() : noSamples()));
  }
  if (graphs[state.tab]) drawFlame();
  if (state.tab === "requests") drawRequests();
}
