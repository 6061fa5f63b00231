// The page: head, controls, and what follows from them.

function head() {
  const held = (what) => data.experiments.filter((one) => one.what === what).length;
  const discarded = data.experiments.filter((one) => one.discarded !== null).length;
  const facts = [
    held("target") + " experiments and " + held("baseline") + " baselines in " + duration(data.real_ms),
    discarded ? discarded + " left out, spoiled by other work" : null,
    data.runs > 1 ? data.runs + " runs" : null,
    data.host + ", " + data.cores + " cores",
    data.started_ms ? new Date(data.started_ms).toLocaleString() : null,
  ];
  return el("header", { class: "top" }, el("p", { class: "mark" }, "andweorc"), el("h1", {}, data.program), el("p", { class: "hint" }, facts.filter(Boolean).join(" \u00b7 ")));
}

/** The answer in one sentence, by what is chosen. */
function lead() {
  const { judged, ranking } = view();
  const point = el("code", {}, data.points[state.point].name);
  if (!judged) return el("p", { class: "lead" }, "Nothing is said of what would raise the throughput of ", point, " under this load. ", metrics().length > 1 ? "Choose a latency." : null);
  const of = (verdict) => ranking.filter((one) => one.verdict === verdict);
  const best = of("matters").map((one) => data.targets[one.target]).at(0);
  const burner = of("nothing").map((one) => data.targets[one.target]).find((t) => t.share >= 0.1);
  const burns = burner ? [" ", el("code", {}, burner.name), ", with " + percent(burner.share) + " of the CPU, would change nothing."] : null;
  if (!best) {
    const open = of("inconclusive");
    const more = open.reduce((sum, one) => sum + (one.more_seconds ?? 0), 0);
    const undecided = open.length ? " Of " + open.length + " it is not known yet" + (more ? "; about " + roughly(Math.max(more, 1)) + " more of experiments would tell." : ".") : null;
    return el("p", { class: "lead" }, "Nothing that was tested is known to " + (better() > 0 ? "raise" : "lower") + " the " + measure() + " of ", point, ".", undecided, burns);
  }
  const effect = effectOf(best) ?? effectsOf(best).at(-1);
  const from = becomes(effect);
  return el(
    "p",
    { class: "lead" },
    "If ", el("code", {}, best.name), " were " + percent(effect.speedup) + " faster, the " + measure() + " of ", point, " would change by ",
    el("strong", {}, change(effect.pct)), " " + interval(effect.low, effect.high) + (from ? ", " + from : "") + ".",
    burns,
  );
}

function controls() {
  const set = (change) => (value) => {
    change(value);
    go();
  };
  const points = el(
    "label",
    { class: "field" },
    el("span", {}, "Point"),
    el(
      "select",
      { id: "point", onchange: (event) => choosePoint(Number(event.target.value)) },
      data.points.map((p, i) => el("option", { value: i, selected: i === state.point }, p.label)),
    ),
  );
  const search = el("input", {
    type: "search", id: "search", placeholder: "Target, file, verdict  (press /)", value: state.query, autocomplete: "off", spellcheck: "false",
    oninput: (event) => type(event.target.value),
  });
  return el(
    "form",
    { class: "controls", role: "search", onsubmit: (event) => event.preventDefault() },
    data.points.length > 1 ? points : null,
    metrics().length > 1 ? choice("metric", "Metric", metrics().map((m) => [m, METRICS[m].replace(" latency", "")]), state.metric, set((v) => (state.metric = v))) : null,
    speedups.length > 1 ? choice("speedup", "Faster by", speedups.map((s) => [String(s), percent(s)]), String(state.speedup), set((v) => (state.speedup = Number(v)))) : null,
    el("label", { class: "field grow" }, el("span", {}, "Search"), search),
  );
}

/** Another point may lack the metric, so that the controls are made anew. */
function choosePoint(index) {
  state.point = index;
  if (!metrics().includes(state.metric)) state.metric = usualMetric();
  document.querySelector(".controls").replaceWith(controls());
  document.getElementById("point").focus();
  go();
}

/** Whether the present address came of typing: one search is one step back, however many letters it has. */
let typing = false;

function type(text) {
  state.query = text.trim();
  history[typing ? "replaceState" : "pushState"](null, "", address());
  typing = true;
  show();
}

function clearSearch() {
  const search = document.getElementById("search");
  search.value = "";
  search.focus();
  type("");
}

/** Shows what was chosen, at an address of its own. */
function go() {
  typing = false;
  history.pushState(null, "", address());
  show();
}

/** Shows what the address says. */
function restore() {
  typing = false;
  readState();
  document.querySelector(".controls").replaceWith(controls());
  show();
  if (state.target !== null && state.tab === "answer") visit();
}

/** Chooses a target and shows its card. */
function choose(index) {
  typing = false;
  [state.target, state.tab] = [index, "answer"];
  if (location.hash !== address()) history.pushState(null, "", address());
  document.querySelectorAll("a.open").forEach((link) => link.setAttribute("aria-current", Number(link.dataset.target) === index));
  document.getElementById("curves-section").replaceWith(cards(listed()));
  visit();
}

/** Shows what the state says. */
function show() {
  const shown = listed();
  cardsShown = CARDS;
  const open = document.getElementById("experiments")?.open ?? false;
  const { section, fill } = ranking(shown);
  document.getElementById("services-section")?.replaceWith(services());
  document.getElementById("answer").replaceChildren(...[lead(), requestsLink()].filter(Boolean));
  document.getElementById("content").replaceChildren(section, cards(shown), experiments(shown, open));
  fill();
  switchTab();
  document.getElementById("status").textContent = shown.length + " of " + data.targets.length + " targets";
}

/** Brings the card of the chosen target into view. */
function visit() {
  const card = document.getElementById("target-" + state.target);
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function onKey(event) {
  const search = document.getElementById(graphs[state.tab] ? "flame-search" : "search");
  if (search === null) return;
  const typed = event.target.matches("input[type=search], select");
  if (event.key === "/" && !typed && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && event.target === search) {
    if (search.value && search.id === "search") clearSearch();
    if (search.id === "flame-search") searchFrames((search.value = ""));
  } else if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key) && event.target.matches("a.open")) {
    event.preventDefault();
    const at = Number(event.target.closest(".row").dataset.row);
    list.focus({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: listed().length - 1 }[event.key]);
  }
}

function onClick(event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest("a.open, a.skip");
  if (!link) return;
  event.preventDefault();
  if (link.matches(".skip")) document.getElementById("ranking").focus();
  else choose(Number(link.dataset.target));
}

/** A page without a ranking: why, and what to do. */
function deadEnd({ what, todo }) {
  const coded = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
  return [el("p", { class: "lead" }, coded(what)), el("ul", { class: "todo" }, todo.map((step) => el("li", {}, coded(step))))];
}

function start() {
  document.title = data.program + " - andweorc";
  const page = document.getElementById("page");
  const advice = data.advice.length ? el("section", { class: "advice", "aria-label": "Advice" }, el("h2", {}, "Advice"), el("ul", {}, data.advice.map((one) => el("li", {}, el("code", {}, one.target), " ", one.text)))) : null;
  const notes = data.notes.length ? el("section", { class: "notes", "aria-label": "Notes" }, el("h2", {}, "Notes"), el("ul", {}, data.notes.map((note) => el("li", {}, note)))) : null;
  const foot = el("footer", {}, "Intervals are 95 %. Time is virtual: the delays of the experiments are taken out of every number. Shares of CPU overlap where spans nest.");
  if (data.dead_end !== null) {
    document.querySelector(".skip").remove();
    const shown = graph === null ? null : el("section", {}, graphView());
    const single = requestKinds.length ? el("section", {}, requestsView()) : null;
    page.append(head(), el("main", {}, deadEnd(data.dead_end), shown, single, longPolls(), waits(), whoWaits(), polls(), allocations(), events(), notes), foot);
    if (shown) {
      drawFlame();
      addEventListener("resize", fitNames);
    }
    if (single) drawRequests();
    return;
  }
  readState();
  const warning = data.warning ? el("p", { class: "warning", role: "note" }, data.warning) : null;
  const explanation = el("div", { id: "why", popover: "auto", role: "dialog", "aria-label": "Why", tabindex: "-1" });
  const answer = [warning, el("div", { id: "answer", "aria-live": "polite" }), controls(), el("p", { id: "status", class: "status", role: "status" }), services(), el("div", { id: "content" }), advice, longPolls(), waits(), whoWaits(), polls(), allocations(), events()];
  const views = TABS.length === 0 ? answer : [tabs(), el("div", { id: "tab-answer", role: "tabpanel", "aria-labelledby": "to-answer" }, answer), panels()];
  page.append(head(), el("main", {}, views, notes, explanation), foot);
  show();
  if (state.target !== null && state.tab === "answer") visit();
  addEventListener("resize", fitNames);
  document.addEventListener("keydown", onKey);
  document.addEventListener("click", onClick);
  addEventListener("popstate", restore);
  addEventListener("beforeprint", () => list.all());
}

start();
