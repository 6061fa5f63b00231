// The causal curve of a target: the effect at each speedup, with its interval band.

const CHART = { width: 460, height: 250, left: 60, right: 14, top: 12, bottom: 40 };

/** The chart of a target, on the range that all charts of the view share. `more` are further attributes. */
function curve(target, domain, more = {}) {
  const effects = effectsOf(target);
  const most = speedups.at(-1);
  const x = (s) => CHART.left + (s / most) * (CHART.width - CHART.left - CHART.right);
  const y = (v) => CHART.top + ((domain[1] - v) / (domain[1] - domain[0])) * (CHART.height - CHART.top - CHART.bottom);
  const clip = "clip" + target.index;
  const known = effects.filter((e) => e.low !== null);
  const at = (points) => points.map(([s, v]) => x(s).toFixed(1) + "," + y(v).toFixed(1)).join(" ");
  const band = [[0, 0], ...known.map((e) => [e.speedup, e.high]), ...known.toReversed().map((e) => [e.speedup, e.low])];
  // One path holds all single experiments, as lines of no length with round ends. They stand beside
  // the whisker, and apart from each other.
  const dots = singles(target).map(([s, v], i) => `M${(x(s) - 7 - ((i * 0.618) % 1) * 8).toFixed(1)} ${y(v).toFixed(1)}h0`);

  return svg(
    "svg",
    { class: "curve " + tone(target), viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", "aria-label": describe(target, effects), ...more },
    svg("clipPath", { id: clip }, svg("rect", { x: x(0), y: y(domain[1]), width: x(most) - x(0) + 8, height: y(domain[0]) - y(domain[1]) })),
    axes(x, y, domain, most),
    svg(
      "g",
      { "clip-path": `url(#${clip})` },
      known.length ? svg("polygon", { class: "band", points: at(band) }) : null,
      dots.length ? svg("path", { class: "singles", d: dots.join("") }) : null,
      svg("polyline", { class: "line", points: at([[0, 0], ...effects.map((e) => [e.speedup, e.pct])]) }),
      known.map((e) => svg("line", { class: "whisker", x1: x(e.speedup), x2: x(e.speedup), y1: y(e.low), y2: y(e.high) })),
    ),
    effects.map((e) =>
      svg("circle", { class: "dot", cx: x(e.speedup), cy: y(e.pct), r: 4.5 }, svg("title", {}, sentence(e))),
    ),
  );
}

function axes(x, y, domain, most) {
  const right = x(most);
  const grid = ticks(domain, 4).map((v) => [
    svg("line", { class: v === 0 ? "zero" : "grid", x1: x(0), x2: right, y1: y(v), y2: y(v) }),
    svg("text", { class: "tick", x: x(0) - 8, y: y(v) + 4, "text-anchor": "end" }, tick(v)),
  ]);
  const below = [0, ...speedups].map((s) =>
    svg("text", { class: "tick", x: x(s), y: y(domain[0]) + 17, "text-anchor": s === most ? "end" : "middle" }, fixed(s * 100, 0) + "%"),
  );
  return svg(
    "g",
    {},
    // What counts as no effect.
    svg("rect", { class: "nil", x: x(0), width: right - x(0), y: y(1), height: y(-1) - y(1) }),
    grid,
    below,
    svg("text", { class: "axis", x: (x(0) + right) / 2, y: CHART.height - 6, "text-anchor": "middle" }, "if it were so much faster"),
  );
}

/** The curve of a target as a picture. */
function curvePicture(target) {
  const title = label(target) + ": " + measure() + " of " + data.points[state.point].label;
  return sheet(CHART.width, CHART.height + 34, title, curve(target, range(), { y: 34, width: CHART.width, height: CHART.height }));
}

/** The single experiments on a target, as (speedup, effect in %). */
function singles(target) {
  return target.experiments.map((one) => [one.speedup, effectOfOne(one)]).filter(([, effect]) => effect !== null);
}

/** The change of one experiment against the mean of its baselines, in %, or null. */
function effectOfOne(experiment) {
  const value = (one) => one.values[state.point][METRIC_INDEX[state.metric]];
  const baselines = experiment.baselines.map((i) => value(data.experiments[i])).filter((v) => v !== null);
  const measured = value(experiment);
  if (measured === null || baselines.length === 0) return null;
  return (measured / (baselines.reduce((a, b) => a + b) / baselines.length) - 1) * 100;
}

/** `50 % faster: +24.8 % [23.5, 26.2], 4 experiments` */
function sentence(e) {
  const experiments = e.n === 1 ? "" : ", " + e.n + " experiments";
  return percent(e.speedup) + " faster: " + change(e.pct) + " " + interval(e.low, e.high) + experiments;
}

/** The chart in words, for those who do not see it. */
function describe(target, effects) {
  const what = measure() + " of " + data.points[state.point].name;
  return "Change of the " + what + " if " + target.name + " were faster. " + (effects.map(sentence).join("; ") || "Not measured.");
}
