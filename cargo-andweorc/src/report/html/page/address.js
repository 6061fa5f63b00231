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
  const frame = flame === null ? -1 : flame.findIndex((one) => one.path === asked.get("stack"));
  state.frame = Math.max(frame, 0);
  state.frames = asked.get("frames") ?? "";
  state.tab = flame !== null && asked.has("stack") ? "flame" : "answer";
  const request = requestKinds.findIndex((_, kind) => requestKey(kind) === asked.get("request"));
  state.request = Math.max(request, 0);
  if (flame !== null && request >= 0) state.tab = "requests";
}

/** `25` of 0.25. */
const speedupText = (speedup) => String(Number((speedup * 100).toFixed(4)));

/** The address of what is chosen, with this target; or with this frame of the flame graph, if one is given or that is shown. */
function address(target = state.target, frame = state.tab === "flame" ? flame[state.frame] : null) {
  const say = new URLSearchParams();
  if (state.point !== by.point_index) say.set("point", data.points[state.point].label);
  if (state.metric !== usualMetric()) say.set("metric", state.metric);
  if (state.speedup !== speedups.at(-1)) say.set("speedup", speedupText(state.speedup));
  if (state.query) say.set("q", state.query);
  if (state.sort !== "rank" || state.falling) say.set("sort", (state.falling ? "-" : "") + state.sort);
  if (target !== null) say.set("target", data.targets[target].key);
  if (frame !== null) {
    say.set("stack", frame.path);
    if (state.frames) say.set("frames", state.frames);
  }
  if (frame === null && state.tab === "requests") say.set("request", requestKey(state.request));
  return "#" + say.toString();
}
