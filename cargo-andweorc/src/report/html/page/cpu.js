// Where CPU time went: the flame graph of call chains, of the whole program or of a part of it.

/** Kinds of code that CPU time is split by, each with the number of its colour. */
const CODE = [
  { name: "your code", hint: "functions in scope: those of the workspace's own crates, unless --scope says otherwise", colour: 0 },
  { name: "other crates", hint: "dependencies, tokio among them", colour: 4 },
  { name: "std and C", hint: "the standard library, libraries of C, and code without a name", colour: 3 },
];

/** Parts of the program that the graph can be of: all of it, a kind of task, a span, or the threads of a name. */
const cpuParts = data.cpu === null ? [] : partsOf(data.cpu.groups);

if (data.cpu !== null) graphs.cpu = cpuGraph(0);
graph ??= graphs.cpu ?? null;
flame ??= graph && graph.frames;

function partsOf(groups) {
  const sum = ({ stacks }) => stacks.reduce((all, [, , ns]) => all + ns, 0);
  const all = new Map([["all", { key: "all", label: "the whole program", kind: null, targets: [], ns: 0 }]]);
  const add = (kind, named, ns) => {
    if (!named) return;
    const key = kind + " " + named.name;
    if (!all.has(key)) all.set(key, { key, label: named.name, kind, targets: named.targets, ns: 0 });
    all.get(key).ns += ns;
  };
  for (const group of groups) {
    const ns = sum(group);
    all.get("all").ns += ns;
    add("task", group.task, ns);
    add("span", group.span, ns);
    add("thread", { name: group.thread, targets: [] }, ns);
  }
  const order = [null, "task", "span", "thread"];
  return [...all.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind) || b.ns - a.ns);
}

/** The graph of the part with this index. */
function cpuGraph(index) {
  const { real_ms, cpu_ms, sampled_ms, samples, source, lost, merged, cut_off, ended_early, unwound } = data.cpu;
  const of = (count) => percent(count / samples);
  return {
    frames: cpuFrames(cpuParts[index]),
    states: CODE,
    title: "Where CPU time went",
    label: "Flame graph of CPU time",
    wanted: "Function, span, task",
    about: samples + " samples by " + source + " in " + duration(real_ms) + " before the first experiment, each of " + nanos(sampled_ms * 1e6 / samples) + " of CPU time. The program used " + duration(cpu_ms) + " in all, also in threads that neither polled a task nor hit a point, which are not sampled. The width of a box is CPU time; its band says whose code used it. What starts threads and polls tasks is left out." + (unwound ? " Of " + of(unwound) + " of the samples the callers were found without frame pointers." : ""),
    ended: false,
    part: index,
    // Where there are no tabs there is no place to go to.
    controls: () => (data.dead_end === null ? cpuControls() : null),
    losses: [
      ended_early ? "Of " + of(ended_early) + " of the samples the callers are not known, since code has no frame pointers (under [no frame pointers]): build with RUSTFLAGS=\"-C force-frame-pointers=yes\"." : null,
      cut_off ? "Of " + of(cut_off) + " of the samples the outermost callers are not known, since their chains are too long (under [cut off])." : null,
      merged ? merged + " samples could not be told apart and are counted as the stack around them." : null,
      lost ? lost + " samples were lost." : null,
    ],
  };
}

function cpuControls() {
  const options = (kind) => cpuParts.map((part, i) => (part.kind === kind ? el("option", { value: i, selected: i === graph.part }, part.label + " \u00b7 " + nanos(part.ns)) : null)).filter(Boolean);
  const grouped = [["task", "Tasks"], ["span", "Spans"], ["thread", "Threads"]].map(([kind, label]) => {
    const own = options(kind);
    return own.length ? el("optgroup", { label }, own) : null;
  });
  const select = el("select", { id: "cpu-part", onchange: (event) => showPart(Number(event.target.value)) }, options(null), grouped);
  return el("label", { class: "field" }, el("span", {}, "Of"), select);
}

/** The call chains of a part as frames: by task or thread and by span where these differ, then by function. */
function cpuFrames(part) {
  const { groups, frames: functions, code } = data.cpu;
  const stacks = [];
  const places = new Map();
  const place = (parent, kind, name, targets) => {
    const key = parent + " " + kind + " " + name;
    if (!places.has(key)) {
      places.set(key, stacks.length);
      stacks.push({ parent, kind, name, place: null, targets, count: 0, states: CODE.map(() => 0), wakers: [] });
    }
    return places.get(key);
  };
  for (const { thread, task, span, stacks: chains } of groups) {
    const is = { task: task?.name, span: span?.name, thread };
    if (part.kind !== null && is[part.kind] !== part.label) continue;
    let top = null;
    if (part.kind === null || part.kind === "thread") {
      if (task) top = place(top, "task", task.name, task.targets);
      else if (part.kind === null) top = place(top, "thread", thread, []);
    }
    if (span && part.kind !== "span") top = place(top, "span", span.name, span.targets);
    const own = [];
    for (const [parent, number, ns] of chains) {
      const [name, targets] = functions[number];
      const at = place(parent === null ? top : own[parent], "function", name, targets);
      own.push(at);
      stacks[at].states[code[number]] += ns;
    }
  }
  return frames(part.kind === null ? "all" : part.label, stacks, CODE);
}

/** Shows the graph of a part, at an address of its own. */
function showPart(index) {
  choosePart(index);
  showTab("cpu");
  document.getElementById("cpu-part").focus();
}

/** Makes the graph of CPU time that of this part. */
function choosePart(index) {
  if (graphs.cpu.part === index) return;
  const before = graphs.cpu;
  graphs.cpu = cpuGraph(index);
  if (graph === before) [graph, flame, state.frame] = [graphs.cpu, graphs.cpu.frames, 0];
}

/** A link to the CPU time of a target, where samples were in it. */
function cpuLink(target, text) {
  if (data.cpu === null || target.kind === "wait") return null;
  const part = cpuParts.findIndex((one) => one.targets.includes(target.index));
  const function_ = part < 0 && data.cpu.frames.find(([, targets]) => targets.includes(target.index));
  if (part < 0 && !function_) return null;
  const go = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    chooseGraph("cpu");
    choosePart(Math.max(part, 0));
    state.frames = function_ ? function_[0] : "";
    showFrame("cpu", flame[0]);
  };
  return el("a", { class: "to-flame", href: "#" + cpuAddress(new URLSearchParams(), Math.max(part, 0), function_ ? function_[0] : ""), onclick: go, "aria-label": target.name + " in the graph of CPU time" }, text);
}

/** Adds to an address that it is of this part's CPU time, with this search. */
function cpuAddress(say, part, search) {
  say.set("cpu", cpuParts[part]?.key ?? "all");
  if (search) say.set("frames", search);
  return say;
}

/** The view of CPU time without any samples. */
function noSamples() {
  return [el("h2", {}, "Where CPU time went"), el("p", {}, "No samples were taken: profile with ", el("code", {}, "cargo andweorc run --targets functions"), " to see which functions use the CPU.")];
}
