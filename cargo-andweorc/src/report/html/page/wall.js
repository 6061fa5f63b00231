// Where wall time went: the stacks of spans by state, and the tab that shows them.

/** The stacks with all that is inside of them; null where nothing was recorded. The first is the whole. */
const flame = data.wall === null ? null : frames(data.wall);

/** The frame with the most time that is this target's; null where it has none. */
function frameOf(target) {
  if (flame === null) return null;
  const own = flame.filter((frame) => frame.targets.includes(target.index));
  return own.reduce((best, frame) => (best && best.total >= frame.total ? best : frame), null);
}

/** A link to a target's place in the flame graph, where it has one. */
function flameLink(target, text) {
  const frame = frameOf(target);
  if (frame === null) return null;
  const go = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    showFlame(frame);
  };
  return el("a", { class: "to-flame", href: address(state.target, frame), onclick: go, "aria-label": target.name + " in the flame graph" }, text);
}

/** How long a box was in each state, as a band in it. */
function stateBand(frame) {
  let at = 0;
  return frame.whole.map((ns, i) => {
    const part = frame.total > 0 ? ns / frame.total : 0;
    const band = part > 0 ? svg("rect", { class: "state-" + i, x: at * 100 + "%", y: BOX - BAND - 1, width: part * 100 + "%", height: BAND }) : null;
    at += part;
    return band;
  });
}

const look = {
  name: "Flame graph of wall time",
  tone: () => "",
  title: (frame) => frame.name,
  inside: stateBand,
  says: (frame) => spoken(frame.whole),
  describe: describeStates,
  columns: ["in all", ...(data.wall?.states ?? []), "ended"],
  cells: (frame) => [nanos(frame.total), ...frame.whole.map((ns) => (ns > 0 ? nanos(ns) : "\u2013")), frame.count ? String(frame.count) : ""],
};

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

/** What the states mean, by their number. */
const STATE_HINTS = [
  "polled, or running on a plain thread",
  "ready, but not yet polled",
  "waiting for the world outside: sockets, and timers where they can't be told from them",
  "waiting for a timer",
  "waiting for another task or thread of the program",
  "waiting, and nobody saw for what: the task is not profiled, or the wait had not ended",
];

function flameSection() {
  return el(
    "section",
    { id: "tab-flame", role: "tabpanel", "aria-labelledby": "to-flame" },
    el("h2", {}, "Where wall time went"),
    el("p", { class: "hint" }, "The requests of " + duration(data.wall.real_ms) + " before the first experiment, by their spans. The width of a box is wall time; its band says what of it was running and what waiting. Time that several parts of a request share is split evenly; while one runs, none waits. Tasks stand for what they did outside of all spans."),
    flameParts(null, data.wall.states.map((name, i) => ["state-" + i, name, STATE_HINTS[i]])),
  );
}

/** The two tabs of the page: what would help, and where time went. */
function tabs() {
  const one = (name, text) =>
    el("button", { type: "button", id: "to-" + name, role: "tab", "aria-controls": "tab-" + name, onclick: () => (name === "flame" ? showFlame(zoomedFrame()) : showTab(name)), onkeydown: tabKey }, text);
  return el("div", { class: "tabs", role: "tablist", "aria-label": "Views" }, one("answer", "What would help"), one("flame", "Flame graph"));
}

function tabKey(event) {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  event.preventDefault();
  const other = [...document.querySelectorAll("[role=tab]")].find((tab) => tab !== event.currentTarget);
  other.click();
  other.focus();
}

/** Shows a tab, at an address of its own. */
function showTab(name) {
  state.tab = name;
  if (location.hash !== address()) history.pushState(null, "", address());
  switchTab();
}

/** Shows a frame in the flame graph. */
function showFlame(frame) {
  state.frame = frame.index;
  showTab("flame");
  document.getElementById("to-flame").scrollIntoView({ block: "start" });
}

/** Shows the tab that the state says. */
function switchTab() {
  if (flame === null) return;
  for (const name of ["answer", "flame"]) {
    const chosen = state.tab === name;
    const tab = document.getElementById("to-" + name);
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    document.getElementById("tab-" + name).hidden = !chosen;
  }
  if (state.tab === "flame") {
    document.getElementById("flame-search").value = state.frames;
    drawFlame();
  }
}
