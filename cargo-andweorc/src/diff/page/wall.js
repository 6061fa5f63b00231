// Changes in where wall time goes: the stacks of one side, coloured by their difference from those
// of the other.

const data = JSON.parse(document.getElementById("data").textContent);
const SIDES = ["A", "B"];

/** What is chosen: a stack by its index, what is searched for, and the side that gives the widths. */
const state = { frame: 0, frames: "", side: 1 };

/** The stacks of A and those of B, per request. What is the same stack has the same index in both. */
const sides = SIDES.map((_, side) => {
  const of = ({ count, times, ...one }) => ({ ...one, count: count[side], states: times[side].map((ns) => ns / data.wall.sides[side].requests) });
  return frames("all", data.wall.stacks.map(of), data.wall.states);
});

let flame = sides[state.side];

/** From which part of a request on a change has which of the three shades. */
const SHADES = [0.01, 0.03, 0.1];

const sum = (times) => times.reduce((a, b) => a + b, 0);
const both = (frame, of) => sides.map((side) => of(side[frame.index]));
const grown = (frame, of) => both(frame, of).reduce((a, b) => b - a);
const total = (frame) => frame.total;
const own = (frame) => sum(frame.own);

/** `grew-2`: how a stack changed, by the larger of the two requests. */
function tone(frame) {
  const more = grown(frame, total);
  const part = Math.abs(more) / Math.max(...sides.map((side) => side[0].total));
  const shade = SHADES.filter((least) => part >= least).length;
  return shade ? (more > 0 ? "grew-" : "shrank-") + shade : "same";
}

/** `+1.2 ms` */
const signed = (ns) => (ns > 0 ? "+" : ns < 0 ? "\u2212" : "") + nanos(Math.abs(ns));

/** `A 12 ms, B 13 ms: +1 ms` */
function fromTo(frame, of) {
  const [a, b] = both(frame, of);
  return "A " + nanos(a) + ", B " + nanos(b) + ": " + signed(b - a) + (a > 0 ? " (" + change((b / a - 1) * 100, 0) + ")" : "");
}

/** How the time of each state changed, the most first. */
function changedStates(frame) {
  const [a, b] = both(frame, (one) => one.whole);
  const changes = data.wall.states.map((name, i) => [name, b[i] - a[i]]).filter(([, ns]) => Math.abs(ns) >= 500);
  return changes.sort((x, y) => Math.abs(y[1]) - Math.abs(x[1])).map(([name, ns]) => name + " " + signed(ns)).join(", ");
}

/** A number of things per request. */
const often = (count, side) => significant(count / data.wall.sides[side].requests);

const look = {
  name: "Flame graph of what changed",
  tone,
  title: (frame) => frame.name + (tone(frame) === "same" ? "" : " " + signed(grown(frame, total))),
  inside: () => null,
  says: (frame) => fromTo(frame, total),
  describe: describeChange,
  columns: ["A", "B", "change", "of it itself", "ended in A", "in B"],
  cells: (frame) => {
    const ended = both(frame, (one) => one.count).map((count, side) => (count ? often(count, side) : "\u2013"));
    return [...both(frame, total).map(nanos), signed(grown(frame, total)), signed(grown(frame, own)), ...ended];
  },
};

/** What is said of a frame below its name. */
function describeChange(frame) {
  const line = (name, text) => el("p", {}, el("b", {}, name), " ", text);
  const [a, b] = both(frame, (one) => one.count);
  const states = changedStates(frame);
  const only = !frame.parent || (a && b) ? null : a ? "B has no such stack." : b ? "A has no such stack." : null;
  return [
    line("Per request", fromTo(frame, total) + (states ? " \u00b7 " + states : "")),
    frame.children.length && frame.parent ? line("Itself", fromTo(frame, own)) : null,
    only ? el("p", {}, only) : null,
    a || b ? el("p", { class: "hint" }, often(a, 0) + " ended per request in A, " + often(b, 1) + " in B") : null,
  ];
}

const address = () => "#" + new URLSearchParams({ side: SIDES[state.side], stack: zoomedFrame().path, frames: state.frames });

/** Reads what is chosen from the fragment of the address. */
function readState() {
  const asked = new URLSearchParams(location.hash.slice(1));
  state.side = asked.get("side") === "A" ? 0 : 1;
  state.frame = Math.max(sides[0].findIndex((one) => one.path === asked.get("stack")), 0);
  state.frames = asked.get("frames") ?? "";
}

/** Shows what the state says. What the side does not have is not zoomed to. */
function showState() {
  flame = sides[state.side];
  while (flame[state.frame].parent && flame[state.frame].total === 0) state.frame = flame[state.frame].parent.index;
  document.querySelectorAll("input[name=side]").forEach((input) => (input.checked = input.value === SIDES[state.side]));
  document.getElementById("flame-search").value = state.frames;
  drawFlame();
}

function chooseSide(name) {
  state.side = SIDES.indexOf(name);
  showState();
  history.pushState(null, "", address());
}

const least = (shade) => "\u2265 " + percent(SHADES[shade - 1]);
const LEGEND = [
  ["grew-3", "B takes " + least(3) + " of a request more"],
  ...[2, 1].map((shade) => ["grew-" + shade, least(shade) + " more"]),
  ["same", "about as much"],
  ...[1, 2].map((shade) => ["shrank-" + shade, least(shade) + " less"]),
  ["shrank-3", "B takes " + least(3) + " of a request less"],
];

readState();
document.getElementById("wall").append(...flameParts({ controls: choice("side", "Widths are those of", SIDES.map((side) => [side, side]), SIDES[state.side], chooseSide), wanted: "Span, task, file", colours: LEGEND, losses: data.wall.losses }));
showState();
addEventListener("resize", fitNames);
addEventListener("popstate", () => {
  readState();
  showState();
});
document.addEventListener("keydown", (event) => {
  const search = document.getElementById("flame-search");
  if (event.key === "/" && event.target !== search && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && event.target === search) searchFrames((search.value = ""));
});
