// The address: it holds all that is chosen, so that Back works and a link shows the same.

/** Reads what is chosen from the fragment of the address. */
function readState() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const point = data.points.findIndex((p) => p.label === asked.get("point"));
  state.point = point < 0 ? by.point_index : point;
  state.metric = metrics().includes(asked.get("metric")) ? asked.get("metric") : usualMetric();
  state.speedup = speedups.find((s) => speedupText(s) === asked.get("speedup")) ?? speedups.at(-1);
  state.query = asked.get("q") ?? "";
  const sort = asked.get("sort") ?? "rank";
  const column = sort.replace(/^-/, "");
  state.sort = Object.hasOwn(COLUMNS, column) ? column : "rank";
  state.falling = state.sort === column && sort.startsWith("-");
  const target = data.targets.findIndex((t) => t.key === asked.get("target"));
  state.target = target < 0 ? null : target;
  state.tab = asked.has("cpu") && TABS.length ? "cpu" : asked.has("stack") && graphs.flame ? "flame" : "answer";
  if (graphs[state.tab]) chooseGraph(state.tab);
  if (state.tab === "cpu" && graphs.cpu) choosePart(Math.max(cpuParts.findIndex((part) => part.key === asked.get("cpu")), 0));
  const frame = flame === null ? -1 : flame.findIndex((one) => one.path === asked.get("stack"));
  state.frame = Math.max(frame, 0);
  state.frames = asked.get("frames") ?? "";
  const request = requestKinds.findIndex((_, kind) => requestKey(kind) === asked.get("request"));
  state.request = Math.max(request, 0);
  if (request >= 0) state.tab = "requests";
}

/** `25` of 0.25. */
const speedupText = (speedup) => String(Number((speedup * 100).toFixed(4)));

/** The address of what is chosen, with this target and this tab; in a flame graph with this frame of it. */
function address(target = state.target, tab = state.tab, frame = graphs[tab] ? flame[state.frame] : null) {
  const say = new URLSearchParams();
  if (state.point !== by.point_index) say.set("point", data.points[state.point].label);
  if (state.metric !== usualMetric()) say.set("metric", state.metric);
  if (state.speedup !== speedups.at(-1)) say.set("speedup", speedupText(state.speedup));
  if (state.query) say.set("q", state.query);
  if (state.sort !== "rank" || state.falling) say.set("sort", (state.falling ? "-" : "") + state.sort);
  if (target !== null) say.set("target", data.targets[target].key);
  if (tab === "cpu") cpuAddress(say, graph?.part, "");
  if (frame !== null) {
    if (tab !== "cpu" || frame.path) say.set("stack", frame.path);
    if (tab === state.tab && state.frames) say.set("frames", state.frames);
  }
  if (tab === "requests") say.set("request", requestKey(state.request));
  return "#" + say.toString();
}
