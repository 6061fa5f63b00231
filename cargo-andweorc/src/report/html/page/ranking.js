// The ranking, and a card for each target.

/** The table of all targets on one axis. */
function ranking(shown) {
  const domain = range();
  const x = (v) => ((Math.min(Math.max(v, domain[0]), domain[1]) - domain[0]) / (domain[1] - domain[0])) * 100 + "%";
  // Labels at the ends stay inside.
  const anchor = (at) => (parseFloat(at) < 10 ? "start" : parseFloat(at) > 90 ? "end" : "middle");
  const point = data.points[state.point].label;
  const head = el(
    "div",
    { class: "row head", "aria-hidden": "true" },
    el("span", { class: "rank" }, "#"),
    el("span", { class: "what" }, "target"),
    el("span", { class: "share" }, "of CPU"),
    svg(
      "svg",
      { class: "forest" },
      ticks(domain, 4).map((v) => svg("text", { class: "tick", x: x(v), y: 14, "text-anchor": anchor(x(v)) }, v === 0 ? "0" : change(v, Number.isInteger(v) ? 0 : 1).replace(" ", ""))),
    ),
    el("span", { class: "effect" }, "effect, 95 % interval"),
    el("span", { class: "verdict-cell" }, "verdict"),
  );
  const rows = shown.map(({ target, index, rank }) => {
    const effect = effectOf(target);
    return el(
      "li",
      {},
      el(
        "a",
        { class: "row " + tone(target, effect), href: address(index), "data-target": index },
        el("span", { class: "rank" }, String(rank)),
        el("span", { class: "what" }, name(target)),
        el("span", { class: "share" }, share(target)),
        svg(
          "svg",
          { class: "forest", "aria-hidden": "true" },
          ticks(domain, 4).map((v) => svg("line", { class: v === 0 ? "zero" : "grid", x1: x(v), x2: x(v), y1: 0, y2: "100%" })),
          effect && effect.low !== null ? svg("line", { class: "whisker", x1: x(effect.low), x2: x(effect.high), y1: "50%", y2: "50%" }) : null,
          effect ? svg("circle", { class: "dot", cx: x(effect.pct), cy: "50%", r: 5 }) : null,
        ),
        el(
          "span",
          { class: "effect" },
          effect ? [el("b", {}, change(effect.pct)), " ", el("span", { class: "interval" }, interval(effect.low, effect.high))] : "not measured",
        ),
        el("span", { class: "verdict-cell" }, chip(target)),
      ),
    );
  });
  const order = better() > 0 ? "the lower end of the interval of its rise" : "the surest fall";
  return el(
    "section",
    { "aria-labelledby": "ranking" },
    el("h2", { id: "ranking", tabindex: "-1" }, "What would change the ", el("em", {}, METRICS[state.metric].toLowerCase()), " of ", el("code", {}, point)),
    el("p", { class: "hint" }, "Each row: the effect if that part were " + percent(state.speedup) + " faster. Ordered by " + order + ". Verdicts are about the " + MEASURE + " of ", el("code", {}, data.points[by.point_index].name), "."),
    head,
    el("ol", { class: "ranking" }, rows),
    shown.length ? null : el("p", { class: "empty" }, "No target matches the search."),
  );
}

function name(target) {
  return [
    el("span", { class: "kind" }, target.kind), " ",
    el("span", { class: "name" }, target.name),
    target.place ? el("span", { class: "place" }, breakable(target.place)) : null,
  ];
}

/** A path that may be broken after a slash. */
function breakable(path) {
  return path.split("/").map((part, i) => (i > 0 ? ["/", el("wbr", {}), part] : part));
}

function share(target) {
  if (target.share === null) return null;
  const bar = el("span", { class: "bar" }, el("i", {}));
  bar.firstChild.style.width = Math.min(target.share, 1) * 100 + "%";
  return [bar, percent(target.share)];
}

function chip(target) {
  return el("span", { class: "chip " + target.verdict, title: VERDICTS[target.verdict] }, target.verdict);
}

/** All curves. */
function cards(shown) {
  const domain = range();
  return el(
    "section",
    { "aria-labelledby": "curves" },
    el("h2", { id: "curves" }, "Causal curves"),
    el("p", { class: "hint" }, "The effect over the speedup, with its 95 % interval; faint dots are single experiments. All charts have one scale" + (isRanking() ? ", and within the grey stripe is no effect." : ".")),
    el("div", { class: "cards" }, shown.map((one) => card(one, domain))),
  );
}

function card({ target, index, rank }, domain) {
  return el(
    "article",
    { class: "card", id: "target-" + index, tabindex: "-1", "aria-label": label(target) },
    el("header", {}, el("span", { class: "rank" }, String(rank)), el("h3", {}, name(target)), chip(target)),
    curve(target, index, domain),
    facts(target),
    effectsTable(target),
    snippet(target),
  );
}

/** `39 % of CPU · inside it 0.46 of the time · impact +48.1 [44.0, 52.3] · about 30 s more would tell` */
function facts(target) {
  const impact = impactOf(target);
  const all = [
    target.share === null ? null : percent(target.share) + " of CPU",
    target.wall_share === null ? null : target.kind === "wait" ? fixed(target.wall_share, 1) + " waits at a time" : percent(target.wall_share) + " of wall time",
    impact ? "impact " + change(impact.slope) + " " + interval(impact.low, impact.high) : null,
    isRanking() && target.verdict === "inconclusive" && target.more_seconds ? "about " + roughly(Math.max(target.more_seconds, 1)) + " more would tell" : null,
  ];
  return el("p", { class: "facts" }, all.filter(Boolean).join(" \u00b7 "));
}

function effectsTable(target) {
  const rows = effectsOf(target).map((e) =>
    el("tr", {}, el("th", { scope: "row" }, percent(e.speedup)), el("td", {}, change(e.pct)), el("td", {}, interval(e.low, e.high)), el("td", {}, String(e.n))),
  );
  if (rows.length === 0) return null;
  const head = ["faster by", METRICS[state.metric].toLowerCase(), "95 % interval", "n"];
  return el("table", { class: "effects" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows));
}

function snippet(target) {
  const source = target.source;
  if (!source) return null;
  const lines = source.lines.map((text, i) => {
    const number = source.first + i;
    return el("span", { class: number === source.line ? "this" : null }, el("i", { "aria-hidden": "true" }, String(number)), text + "\n");
  });
  return [
    el("pre", { class: "source", role: "group", tabindex: "0", "aria-label": "Source of " + target.name }, lines),
    source.changed ? el("p", { class: "hint" }, "The file was written after the run; the line may have moved.") : null,
  ];
}
