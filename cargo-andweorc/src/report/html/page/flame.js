// A flame graph of stacks, and a table of the same.
//
// The page has the stacks (`flame`, made by `frames`), the state (`state.frame`, `state.frames`), its `address()`, and
// `look`: what is drawn in a box and said of it.

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

const zoomedFrame = () => flame[state.frame] ?? flame[0];

/** The chart. `focus` is the frame that can be reached with the Tab key. */
function flameChart() {
  const zoomed = zoomedFrame();
  const boxes = placed(zoomed);
  const rows = Math.max(...boxes.map((box) => box.frame.depth)) + 1;
  const chart = svg("svg", { id: "flame", class: "flame", role: "tree", "aria-label": look.name, height: rows * BOX, width: "100%" }, boxes.map((box) => flameBox(box, box.frame === zoomed)));
  chart.addEventListener("keydown", (event) => flameKey(event, boxes));
  return chart;
}

function flameBox({ frame, x, width, around }, isZoomed) {
  const matches = found(frame);
  const share = percent(frame.total / Math.max(flame[0].total, 1));
  const says = frame.name + ", " + nanos(frame.total) + ", " + share + " of all: " + look.says(frame);
  const box = svg(
    "svg",
    {
      class: "frame " + look.tone(frame) + (around ? " around" : "") + (matches ? " found" : ""), x: x * 100 + "%", y: frame.depth * BOX, width: width * 100 + "%", height: BOX, "data-frame": frame.index,
      role: "treeitem", "aria-level": frame.depth + 1, "aria-label": says, "aria-current": isZoomed ? "true" : null, tabindex: isZoomed ? "0" : "-1",
      onclick: () => zoom(frame), onfocus: () => describeFrame(frame), onpointerenter: () => describeFrame(frame), onpointerleave: () => describeFrame(focusedFrame()),
    },
    svg("title", {}, says),
    svg("rect", { class: "back", width: "100%", height: BOX - 1 }),
    svg("text", { x: 5, y: BOX - BAND - 7, "aria-hidden": "true" }, look.title(frame)),
    look.inside(frame),
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
  const heading = el("h3", {}, frame.kind ? el("span", { class: "kind" }, frame.kind) : null, " ", el("span", { class: "name" }, frame.name), frame.place ? el("span", { class: "place" }, frame.place) : null);
  of.replaceChildren(heading, ...look.describe(frame).filter(Boolean));
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
    return el("tr", {}, name, look.cells(frame).map((text) => el("td", {}, text)));
  };
  const head = ["stack", ...look.columns];
  const left = rows.length - many;
  const more = () => document.getElementById("flame-table").replaceChildren(flameTable(many + 5 * TABLE_ROWS));
  return el(
    "div",
    {},
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": look.name + ", as a table" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows.slice(0, many).map(row)))),
    left > 0 ? el("button", { type: "button", class: "more", onclick: more }, "Show more (" + left + " left)") : null,
  );
}

/** What colours mean: a class of colour, its meaning, and a hint where that is long. */
function legend(colours) {
  const swatch = (tone) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: tone, width: 14, height: 14, rx: 2 }));
  return el("ul", { class: "legend", "aria-label": "Colours" }, colours.map(([tone, name, hint]) => el("li", { title: hint }, swatch(tone), name)));
}

/** The chart with all that belongs to it, below a heading: `controls` beside the search, which looks for `wanted`; what `colours` mean; and sentences on what was lost. */
function flameParts({ controls, wanted, colours, losses }) {
  const search = el("input", { type: "search", id: "flame-search", placeholder: wanted, value: state.frames, autocomplete: "off", spellcheck: "false", oninput: (event) => searchFrames(event.target.value) });
  return [
    el("div", { class: "controls flame-controls" }, controls, el("label", { class: "field grow" }, el("span", {}, "Search"), search), el("button", { type: "button", id: "flame-out", class: "quiet", onclick: () => zoom(flame[0]) }, "Zoom out")),
    el("p", { id: "flame-found", class: "status", role: "status" }),
    legend(colours),
    el("div", { class: "flame-box" }, svg("svg", { id: "flame" })),
    el("p", { class: "hint keys" }, "Click or Enter zooms, Escape zooms out, arrows move."),
    el("div", { id: "flame-frame", class: "card" }),
    losses.length ? el("p", { class: "hint" }, losses.join(" ")) : null,
    el("details", {}, el("summary", {}, el("h2", {}, "As a table"), " each row with all that is inside of it"), el("div", { id: "flame-table" })),
  ].filter(Boolean);
}
