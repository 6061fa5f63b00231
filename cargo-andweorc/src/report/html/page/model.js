// What is shown, and in which order.

const data = JSON.parse(document.getElementById("data").textContent);

const METRICS = { throughput: "Throughput", mean: "Mean latency", p50: "p50 latency", p90: "p90 latency", p99: "p99 latency" };
const METRIC_INDEX = { throughput: 0, mean: 1, p50: 2, p90: 3, p99: 4 };

/** What the report ranks by: a point and a metric. */
const by = data.ranked_by;

const speedups = [...new Set(data.targets.flatMap((t) => t.effects.map((e) => e.speedup)))].sort((a, b) => a - b);

/** What is chosen. A target is chosen by its index, or null. */
const state = { point: by.point_index, metric: by.metric, speedup: speedups.at(-1), query: "", sort: "rank", falling: false, target: null, tab: "answer", frame: 0, frames: "", request: 0 };

const slot = (point, metric) => point * 5 + METRIC_INDEX[metric];
const label = (target) => target.kind + " " + target.name;

// Looked up at each key that is pressed, therefore once.
{
  const seen = new Map();
  data.targets.forEach((target, index) => {
    target.index = index;
    const key = label(target);
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    // A name for its address, which stays when the order of the targets changes.
    target.key = before ? key + " (" + (before + 1) + ")" : key;
    target.text = [target.kind, target.name, target.place ?? ""].join(" ").toLowerCase();
    target.slots = [];
    for (const effect of target.effects) (target.slots[slot(effect.point, effect.metric)] ??= []).push(effect);
    target.experiments = [];
  });
  for (const one of data.experiments) {
    if (one.target !== null && one.discarded === null) data.targets[one.target].experiments.push(one);
  }
  for (const view of data.points.flatMap((point) => point.views)) {
    if (view === null) continue;
    view.standing = [];
    view.ranking.forEach((one, i) => (view.standing[one.target] = { ...one, rank: i + 1 }));
  }
}

const UNMEASURED = { verdict: "inconclusive", more_seconds: null, rank: null };

/** How targets stand by what is chosen. */
const view = () => data.points[state.point].views[METRIC_INDEX[state.metric]] ?? { judged: true, now: null, ranking: [], standing: [] };
const standing = (target) => view().standing[target.index] ?? UNMEASURED;
const effectsOf = (target) => target.slots[slot(state.point, state.metric)] ?? [];
const effectOf = (target) => effectsOf(target).find((e) => e.speedup === state.speedup);
const impactOf = (target) => target.impacts.find((one) => one.point === state.point && one.metric === state.metric);

/** The metrics of the chosen point: a progress point has no latencies. */
function metrics() {
  return data.points[state.point].kind === "latency" ? Object.keys(METRICS) : ["throughput"];
}

/** The metric that is shown of the chosen point when none was asked for. */
const usualMetric = () => (metrics().includes(by.metric) ? by.metric : "throughput");

/** The chosen metric in a sentence. */
const measure = () => METRICS[state.metric].replace(/^[TM]/, (c) => c.toLowerCase());

/** 1 where more is better, -1 where less is. */
const better = () => (state.metric === "throughput" ? 1 : -1);

const VERDICT_ORDER = ["matters", "hurts", "inconclusive", "nothing"];

/** The columns that can be sorted by: what of a target (null is the last), and whether the first click makes it fall. */
const COLUMNS = {
  rank: { of: (target) => standing(target).rank, falls: () => false },
  target: { of: (target) => target.name.toLowerCase(), falls: () => false },
  share: { of: (target) => target.share, falls: () => true },
  effect: { of: (target) => effectOf(target)?.pct ?? null, falls: () => better() > 0 },
  verdict: { of: (target) => VERDICT_ORDER.indexOf(standing(target).verdict), falls: () => false },
};

/** The targets that the search leaves, in the order that is chosen. */
function listed() {
  const words = state.query.toLowerCase().split(/\s+/);
  const found = data.targets.filter((target) => {
    const text = target.text + " " + standing(target).verdict;
    return words.every((word) => text.includes(word));
  });
  const key = new Map(found.map((target) => [target, COLUMNS[state.sort].of(target)]));
  const way = state.falling ? -1 : 1;
  const rank = (target) => standing(target).rank ?? Infinity;
  return found.sort((a, b) => {
    const [x, y] = [key.get(a), key.get(b)];
    if (x === null || y === null) return (x === null) - (y === null) || rank(a) - rank(b);
    return way * (x < y ? -1 : x > y ? 1 : 0) || rank(a) - rank(b) || a.index - b.index;
  });
}

/** `good`, `bad`, `none` or `open`: the colour of a verdict. */
const tone = (target) => ({ matters: "good", hurts: "bad", nothing: "none", inconclusive: "open" })[standing(target).verdict];

/** The range of percentages for all charts of the view. Wide intervals are cut off rather than flatten the rest. */
function range() {
  let [most, low, high] = [4, -2, 2];
  for (const target of data.targets) {
    for (const e of effectsOf(target)) {
      most = Math.max(most, Math.abs(e.pct));
      low = Math.min(low, e.low ?? e.pct, e.pct);
      high = Math.max(high, e.high ?? e.pct, e.pct);
    }
  }
  low = Math.max(-1.8 * most, low);
  high = Math.min(1.8 * most, high);
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

/** A tick in words: `0`, `+5%`. */
const tick = (v) => (v === 0 ? "0" : change(v, Number.isInteger(v) ? 0 : 1).replace(" ", ""));
