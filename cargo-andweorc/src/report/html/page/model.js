// What is shown, and in which order.

const data = JSON.parse(document.getElementById("data").textContent);

const METRICS = { throughput: "Throughput", mean: "Mean latency", p50: "p50 latency", p90: "p90 latency", p99: "p99 latency" };
const METRIC_INDEX = { throughput: 0, mean: 1, p50: 2, p90: 3, p99: 4 };

/** What targets are ranked and judged by: a point and a metric. */
const by = data.ranked_by;
const MEASURE = METRICS[by.metric].toLowerCase();

/** What a verdict means, in words. */
const VERDICTS = {
  matters: "faster, it " + (by.metric === "throughput" ? "raises" : "lowers") + " the " + MEASURE,
  hurts: "faster, it " + (by.metric === "throughput" ? "lowers" : "raises") + " the " + MEASURE + " (contention, most often)",
  nothing: "changes the " + MEASURE + " by less than one point, surely",
  inconclusive: "not known yet",
};

const speedups = [...new Set(data.targets.flatMap((t) => t.effects.map((e) => e.speedup)))].sort((a, b) => a - b);

const state = { point: by.point_index, metric: by.metric, speedup: speedups[speedups.length - 1], query: "" };

/** Reads the state from the fragment of the address, so that a view can be linked to. Returns the target it names, if any. */
function readState() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const point = data.points.findIndex((p) => p.label === asked.get("point"));
  state.point = point < 0 ? by.point_index : point;
  state.metric = metrics().includes(asked.get("metric")) ? asked.get("metric") : usualMetric();
  const speedup = Number(asked.get("speedup")) / 100;
  state.speedup = speedups.includes(speedup) ? speedup : speedups[speedups.length - 1];
  state.query = asked.get("q") || "";
  return asked.get("target");
}

/** The address of the present view, or of a target in it. */
function address(target) {
  const say = new URLSearchParams();
  if (state.point !== by.point_index) say.set("point", data.points[state.point].label);
  if (state.metric !== usualMetric()) say.set("metric", state.metric);
  if (state.speedup !== speedups[speedups.length - 1]) say.set("speedup", String(state.speedup * 100));
  if (state.query) say.set("q", state.query);
  if (target !== undefined) say.set("target", String(target));
  return "#" + say.toString();
}

/** The metrics of the chosen point: a progress point has no latencies. */
function metrics() {
  const point = data.points[state.point];
  return point && point.kind === "latency" ? Object.keys(METRICS) : ["throughput"];
}

/** The metric that is shown of the chosen point when none was asked for. */
const usualMetric = () => (metrics().includes(by.metric) ? by.metric : "throughput");

const isChosen = (one) => one.point === state.point && one.metric === state.metric;
const effectsOf = (target) => target.effects.filter(isChosen);
const effectOf = (target) => effectsOf(target).find((e) => e.speedup === state.speedup);
const impactOf = (target) => target.impacts.find(isChosen);
const label = (target) => target.kind + " " + target.name;

/** Whether the view is the one that verdicts are about. */
const isRanking = () => state.point === by.point_index && state.metric === by.metric;

/** 1 where more is better, -1 where less is. */
const better = () => (state.metric === "throughput" ? 1 : -1);

/** The surest gain by the chosen metric: targets are ordered by it. */
function surest(target) {
  const impact = impactOf(target);
  if (!impact || impact.low === null) return -Infinity;
  return better() > 0 ? impact.low : -impact.high;
}

/** The targets that the search leaves, with their rank among all. */
function ranked() {
  const all = data.targets.map((target, index) => ({ target, index }));
  // The report's order is that of the ranking view already.
  if (!isRanking()) all.sort((a, b) => surest(b.target) - surest(a.target) || a.index - b.index);
  all.forEach((one, i) => (one.rank = i + 1));
  return all.filter((one) => found(one.target));
}

/** Whether all words of the search are in a target's name, kind, place or verdict. */
function found(target) {
  const text = [target.kind, target.name, target.place || "", target.verdict].join(" ").toLowerCase();
  return state.query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** `good`, `bad`, `none` or `open`: the verdict where there is one, else what the interval says. */
function tone(target, effect) {
  if (isRanking()) return { matters: "good", hurts: "bad", nothing: "none", inconclusive: "open" }[target.verdict];
  if (!effect || effect.low === null) return "open";
  const [low, high] = better() > 0 ? [effect.low, effect.high] : [-effect.high, -effect.low];
  return low > 0 ? "good" : high < 0 ? "bad" : "open";
}

/** The range of percentages for all charts of the view. Wide intervals are cut off rather than flatten the rest. */
function range() {
  const effects = data.targets.flatMap(effectsOf);
  const most = Math.max(4, ...effects.map((e) => Math.abs(e.pct)));
  const ends = effects.flatMap((e) => [e.pct, e.low ?? e.pct, e.high ?? e.pct]);
  const low = Math.max(-1.8 * most, Math.min(-2, ...ends));
  const high = Math.min(1.8 * most, Math.max(2, ...ends));
  const room = (high - low) * 0.06;
  return [low - room, high + room];
}

/** About `count` round numbers of a range. */
function ticks([low, high], count) {
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const all = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) all.push(i * step);
  return all;
}
