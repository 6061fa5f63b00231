// A card for a target: its causal curve, its numbers and its source.

/** Cards made at once. */
const CARDS = 6;

/** So many of the ranking have a card, apart from the target that is chosen. */
let cardsShown = CARDS;

/** The cards of the first targets of the list, and before them that of the chosen target if it is not among them. */
function cards(shown) {
  const domain = range();
  const first = shown.slice(0, cardsShown);
  const chosen = state.target === null ? null : data.targets[state.target];
  if (chosen && !first.includes(chosen)) first.unshift(chosen);
  const left = shown.length - cardsShown;
  const more = () => {
    cardsShown += CARDS;
    document.getElementById("curves-section").replaceWith(cards(shown));
    document.querySelector(`#curves-section .card:nth-child(${first.length + 1})`)?.focus();
  };
  return el(
    "section",
    { id: "curves-section", "aria-labelledby": "curves" },
    el("h2", { id: "curves" }, "Causal curves"),
    el("p", { class: "hint" }, "The effect over the speedup, with its 95 % interval; faint dots are single experiments. All charts have one scale, and within the grey stripe is no effect." + (left > 0 ? " Choose a target in the ranking to see its curve." : "")),
    el("div", { class: "cards" }, first.map((target) => card(target, domain))),
    left > 0 ? el("button", { type: "button", class: "more", onclick: more }, "Show more (" + left + " left)") : null,
  );
}

function card(target, domain) {
  const { rank } = standing(target);
  return el(
    "article",
    { class: "card" + (target.index === state.target ? " chosen" : ""), id: "target-" + target.index, tabindex: "-1", "aria-label": label(target) },
    el(
      "header",
      {},
      rank === null ? null : el("span", { class: "rank" }, String(rank)),
      el("h3", {}, el("span", { class: "kind" }, target.kind), " ", el("span", { class: "name" }, target.name), place(target.place, target.editor)),
      saveButton("the curve of " + target.name, data.program + "-" + target.name + "-" + state.metric, () => curvePicture(target)),
    ),
    curve(target, domain),
    el("p", { class: "why" }, el("b", { class: tone(target) }, verdictWord(target)), " ", why(target)),
    facts(target),
    [flameLink(target, "Where its wall time went"), cpuLink(target, "Where its CPU time went")].filter(Boolean).flatMap((link, i) => (i > 0 ? [" \u00b7 ", link] : [link])),
    target.fills_time === null ? null : el("p", { class: "hint" }, target.fills_time + "."),
    effectsTable(target),
    snippet(target),
  );
}

/** A place in the source, as a link where an editor can be asked for it. */
function place(text, editor) {
  if (text === null) return null;
  // A line may be broken after a slash.
  const parts = text.split("/").map((part, i) => (i > 0 ? ["/", el("wbr", {}), part] : part));
  return editor === null ? el("span", { class: "place" }, parts) : el("a", { class: "place", href: editor, title: "Open in the editor" }, parts);
}

/** `39 % of CPU · 46 % of wall time · impact +48.1 [44.0, 52.3]` */
function facts(target) {
  const impact = impactOf(target);
  const all = [
    target.share === null ? null : percent(target.share) + " of CPU",
    target.wall_share === null ? null : target.kind === "wait" ? fixed(target.wall_share, 1) + " waits at a time" : percent(target.wall_share) + " of wall time",
    impact ? "impact " + change(impact.slope) + " " + interval(impact.low, impact.high) : null,
  ];
  return el("p", { class: "facts" }, all.filter(Boolean).join(" \u00b7 "));
}

function effectsTable(target) {
  const { now } = view();
  const rows = effectsOf(target).map((e) =>
    el("tr", {}, el("th", { scope: "row" }, percent(e.speedup)), el("td", {}, now === null ? "" : quantity(state.metric, now * (1 + e.pct / 100))), el("td", {}, change(e.pct)), el("td", {}, interval(e.low, e.high)), el("td", {}, String(e.n))),
  );
  if (rows.length === 0) return null;
  const head = ["faster by", "then", "change", "95 % interval", "n"];
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
