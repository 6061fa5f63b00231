// How long tasks were polled and how long they were ready before, and the polls that were long.

/** So many rows: those after them have little time. */
const POLLS = 20;

/** How many there were of each length, as bars: one for each octave from the shortest to the longest of all kinds. */
function octaves(pairs, [low, high], what) {
  const slots = Math.log2(high / low) + 1;
  const most = Math.max(...pairs.map(([, count]) => count));
  const bars = pairs.map(([end, count]) => {
    const height = Math.max(6, 100 * (Math.log1p(count) / Math.log1p(most)));
    return svg("rect", { x: Math.log2(end / low) * 10, y: 100 - height, width: 9, height }, svg("title", {}, count + " of up to " + nanos(end)));
  });
  const says = what + ": " + pairs.map(([end, count]) => count + " up to " + nanos(end)).join(", ");
  return svg("svg", { class: "octaves", viewBox: "0 0 " + slots * 10 + " 100", preserveAspectRatio: "none", role: "img", "aria-label": says }, bars);
}

function polls() {
  if (data.polls.length === 0) return null;
  const shown = data.polls.slice(0, POLLS);
  const ends = shown.flatMap((one) => [...one.polls.octaves, ...one.delays.octaves].map(([end]) => end));
  const range = [Math.min(...ends), Math.max(...ends)];
  const head = ["task", "polls", "p50", "p99", "longest", "lengths", "ready for, p50", "p99", "longest", "lengths", "experiments"];
  const times = (lengths, what) => [
    ...[lengths.p50_ns, lengths.p99_ns, lengths.max_ns].map((ns) => el("td", {}, lengths.count > 0 ? nanos(ns) : "\u2013")),
    el("td", {}, lengths.count > 0 ? octaves(lengths.octaves, range, what) : null),
  ];
  const rows = shown.map((one) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: "name" }, one.name), place(one.place, one.editor)),
      el("td", {}, String(one.polls.count)),
      times(one.polls, one.name + ", lengths of polls"),
      times(one.delays, one.name + ", times ready before a poll"),
      el("td", {}, one.tested ?? "\u2013"),
    ),
  );
  const left = data.polls.length - shown.length;
  return el(
    "section",
    { "aria-labelledby": "polls" },
    el("h2", { id: "polls" }, "Polls"),
    el("p", { class: "hint" }, "Before the first experiment, by kind of task: how long a poll was, and how long its task had been ready before it. Bars go from " + nanos(range[0]) + " to " + nanos(range[1]) + ", each is of twice the length, and their heights are logarithmic." + (left > 0 ? " " + left + " more kinds had less time." : "") + (data.polls_merged ? " " + data.polls_merged + " polls were of kinds beyond those that are told apart." : "")),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Polls" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows))),
  );
}

/** The longest at the top, with their places. */
function longPolls() {
  if (data.long_polls === null || data.long_polls.places.length === 0) return null;
  const { threshold_ns, places, left_out } = data.long_polls;
  const item = (one) =>
    el("li", {}, el("code", {}, one.task), " " + one.text, one.editor ? [" ", el("a", { href: one.editor, class: "place-link", title: "Open in the editor" }, "open")] : null, one.tested ? el("p", { class: "hint" }, one.tested) : null);
  const more = places.length - POLLS;
  return el(
    "section",
    { class: "advice", "aria-labelledby": "long-polls" },
    el("h2", { id: "long-polls" }, "Long polls"),
    el("p", { class: "hint" }, "Polls of " + nanos(threshold_ns) + " and more, in which a worker has nothing else to run: caught while they lasted, before the first experiment and in baselines. Time without a processor is not in them."),
    el("ul", {}, places.slice(0, POLLS).map(item)),
    more > 0 ? el("p", { class: "hint" }, more + " more places had less time.") : null,
    left_out ? el("p", { class: "hint" }, left_out + ".") : null,
  );
}
