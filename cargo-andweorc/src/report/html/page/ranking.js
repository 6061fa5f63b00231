// The ranking: a table of all targets on one axis.

/** The list that is shown. */
let list = null;

/** Rows of the picture of a ranking. */
const DRAWN_ROWS = 20;

function ranking(shown) {
  const domain = range();
  const x = (v) => ((Math.min(Math.max(v, domain[0]), domain[1]) - domain[0]) / (domain[1] - domain[0])) * 100 + "%";
  // Labels at the ends stay inside.
  const anchor = (at) => (parseFloat(at) < 10 ? "start" : parseFloat(at) > 90 ? "end" : "middle");
  const head = el(
    "div",
    { class: "row head", role: "row" },
    column("rank", "#"),
    column("target", "target"),
    column("share", "of CPU"),
    el("span", { class: "forest-cell", role: "presentation" }, svg("svg", { class: "forest", "aria-hidden": "true" }, ticks(domain, 4).map((v) => svg("text", { class: "tick", x: x(v), y: 14, "text-anchor": anchor(x(v)) }, tick(v))))),
    column("effect", "effect, 95 % interval"),
    column("verdict", "verdict"),
  );
  const body = el("div", { class: "rows", role: "rowgroup" });
  const box = el("div", { class: "ranking" }, body);
  const { now } = view();
  const section = el(
    "section",
    { "aria-labelledby": "ranking" },
    el("div", { class: "title" }, el("h2", { id: "ranking", tabindex: "-1" }, "What would change the ", el("em", {}, measure()), " of ", el("code", {}, data.points[state.point].label)), shown.length ? saveButton("the ranking", data.program + "-" + state.metric, () => rankingPicture(shown)) : null),
    el("p", { class: "hint" }, now === null ? null : "It is " + quantity(state.metric, now) + " now. ", "Each row: the effect if that part were " + percent(state.speedup) + " faster. Ranked by the surest gain: the worse end of the interval at the largest speedup, by which verdicts are too."),
    el("div", { role: "table", "aria-labelledby": "ranking", "aria-rowcount": shown.length + 1 }, el("div", { role: "rowgroup" }, head), box),
    shown.length ? null : el("p", { class: "empty" }, "No target matches the search. ", el("button", { type: "button", class: "quiet", onclick: clearSearch }, "Clear the search")),
  );
  // Heights are known once it is in the page.
  const fill = () => (list = virtualList(box, body, shown, (target, i) => row(target, i, domain, x)));
  return { section, fill };
}

/** The head of a column: a button that sorts by it, and once more the other way. */
function column(name, text) {
  const sorted = state.sort === name;
  const sort = () => {
    state.falling = sorted ? !state.falling : COLUMNS[name].falls();
    state.sort = name;
    go();
    document.getElementById("sort-" + name).focus();
  };
  return el(
    "span",
    { class: name + "-head", role: "columnheader", "aria-sort": sorted ? (state.falling ? "descending" : "ascending") : "none" },
    el("button", { type: "button", id: "sort-" + name, class: "sort", onclick: sort }, text, el("i", { "aria-hidden": "true" }, sorted ? (state.falling ? "\u25be" : "\u25b4") : "")),
  );
}

function row(target, i, domain, x) {
  const effect = effectOf(target);
  const { rank } = standing(target);
  return el(
    "div",
    { class: "row " + tone(target), role: "row", "aria-rowindex": i + 2, "data-row": i },
    el("span", { class: "rank", role: "cell" }, rank === null ? "" : String(rank)),
    el("span", { class: "what", role: "cell" }, el("a", { class: "open", href: address(target.index), "data-target": target.index, "aria-current": target.index === state.target ? "true" : null, title: target.name }, el("span", { class: "kind" }, target.kind), " ", el("span", { class: "name" }, target.name)), el("span", { class: "place" }, [flameLink(target, "flame graph"), cpuLink(target, "CPU"), target.place].filter(Boolean).flatMap((part, i) => (i > 0 ? [" \u00b7 ", part] : [part])))),
    el("span", { class: "share", role: "cell" }, share(target)),
    el(
      "span",
      { class: "forest-cell", role: "presentation" },
      svg(
        "svg",
        { class: "forest", "aria-hidden": "true" },
        ticks(domain, 4).map((v) => svg("line", { class: v === 0 ? "zero" : "grid", x1: x(v), x2: x(v), y1: 0, y2: "100%" })),
        effect && effect.low !== null ? svg("line", { class: "whisker", x1: x(effect.low), x2: x(effect.high), y1: "50%", y2: "50%" }) : null,
        effect ? svg("circle", { class: "dot", cx: x(effect.pct), cy: "50%", r: 5 }) : null,
      ),
    ),
    el("span", { class: "effect", role: "cell" }, effect ? [el("b", {}, change(effect.pct)), " ", el("span", { class: "interval" }, interval(effect.low, effect.high)), el("span", { class: "becomes" }, becomes(effect))] : "not measured"),
    el("span", { class: "verdict-cell", role: "cell" }, chip(target)),
  );
}

/** `from 614 /s to 797 /s`, or nothing. No line is broken within a value. */
function becomes(effect) {
  const { now } = view();
  const value = (v) => quantity(state.metric, v).replace(" ", "\u00a0");
  return now === null ? "" : "from " + value(now) + " to " + value(now * (1 + effect.pct / 100));
}

function share(target) {
  if (target.share === null) return null;
  const bar = el("span", { class: "bar" }, el("i", {}));
  bar.firstChild.style.width = Math.min(target.share, 1) * 100 + "%";
  return [bar, percent(target.share)];
}

/** The first rows of the ranking as a picture. */
function rankingPicture(shown) {
  const rows = shown.slice(0, DRAWN_ROWS);
  const domain = range();
  const [width, left, right, top, high] = [860, 290, 600, 58, 30];
  const bottom = top + rows.length * high;
  const x = (v) => left + ((Math.min(Math.max(v, domain[0]), domain[1]) - domain[0]) / (domain[1] - domain[0])) * (right - left);
  const title = `${data.program}: ${measure()} of ${data.points[state.point].label}, if a part were ${percent(state.speedup)} faster`;
  const clipped = (text) => (text.length > 36 ? "\u2026" + text.slice(-35) : text);
  return sheet(
    width,
    bottom + (rows.length < shown.length ? 34 : 14),
    title,
    ticks(domain, 4).map((v) => [
      svg("line", { class: v === 0 ? "zero" : "grid", x1: x(v), x2: x(v), y1: top - 6, y2: bottom }),
      svg("text", { class: "tick", x: x(v), y: top - 12, "text-anchor": "middle" }, tick(v)),
    ]),
    rows.map((target, i) => {
      const y = top + (i + 0.5) * high;
      const effect = effectOf(target);
      return svg(
        "g",
        { class: tone(target) },
        svg("text", { class: "named", x: left - 14, y: y + 4, "text-anchor": "end" }, clipped(label(target))),
        effect && effect.low !== null ? svg("line", { class: "whisker", x1: x(effect.low), x2: x(effect.high), y1: y, y2: y }) : null,
        effect ? svg("circle", { class: "dot", cx: x(effect.pct), cy: y, r: 5 }) : null,
        svg("text", { class: "valued", x: right + 14, y: y + 4 }, effect ? change(effect.pct) + " " + interval(effect.low, effect.high) + "  " + verdictWord(target) : "not measured"),
      );
    }),
    rows.length < shown.length ? svg("text", { class: "tick", x: 14, y: bottom + 22 }, `and ${shown.length - rows.length} more`) : null,
  );
}
