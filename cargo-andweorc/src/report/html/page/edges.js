// Who waits for whom: a picture of the longest waits, and a table of them.

/** Nodes of the picture; the rest are one more. */
const NODES = 19;

/** Rows of the table at once. */
const EDGE_ROWS = 20;

/** Size of a node, and the room between two. */
const NODE = { width: 176, height: 38, right: 92, below: 16 };

/** Letters of a name that fit into a node. */
const NODE_LETTERS = 22;

/** The nodes and edges of the picture: those with the least time are one node, which is told. */
function picturedEdges() {
  const { parties, edges } = data.edges;
  const times = parties.map(() => 0);
  for (const edge of edges) for (const party of [edge.waiter, edge.waker]) times[party] += edge.ns;
  const byTime = parties.map((_, i) => i).sort((a, b) => times[b] - times[a] || a - b);
  const kept = byTime.length > NODES + 1 ? byTime.slice(0, NODES) : byTime;
  const nodes = kept.map((i) => ({ ...parties[i], time: times[i], layer: 0 }));
  const others = byTime.length - kept.length;
  if (others > 0) nodes.push({ name: others + " others", what: "others", layer: 0 });
  const at = (party) => (kept.includes(party) ? kept.indexOf(party) : nodes.length - 1);
  const sums = new Map();
  for (const { waiter, waker, ns, share } of edges) {
    const key = at(waiter) + " " + at(waker);
    const sum = sums.get(key) ?? { from: at(waiter), to: at(waker), ns: 0, share: 0 };
    sum.ns += ns;
    sum.share += share;
    sums.set(key, sum);
  }
  return { nodes, lines: [...sums.values()].sort((a, b) => b.ns - a.ns), others };
}

/** Puts each node to the right of those that wait for it. A wait that would close a circle is one for a second box of its node. */
function layered(nodes, lines) {
  const next = nodes.map(() => []);
  const reaches = (from, to, seen = new Set()) => from === to || (!seen.has(from) && (seen.add(from), next[from].some((one) => reaches(one, to, seen))));
  const again = new Map();
  for (const line of lines) {
    if (reaches(line.to, line.from)) {
      if (!again.has(line.to)) {
        again.set(line.to, nodes.length);
        nodes.push({ ...nodes[line.to], isAgain: true });
        next.push([]);
      }
      line.to = again.get(line.to);
    }
    next[line.from].push(line.to);
  }
  for (let i = 0; i < nodes.length; i++) {
    for (const { from, to } of lines) nodes[to].layer = Math.max(nodes[to].layer, nodes[from].layer + 1);
  }
  const rows = [];
  for (const node of nodes) {
    node.row = rows[node.layer] ?? 0;
    rows[node.layer] = node.row + 1;
    node.x = node.layer * (NODE.width + NODE.right) + 1;
  }
  const most = Math.max(...rows);
  for (const node of nodes) node.y = (node.row + (most - rows[node.layer]) / 2) * (NODE.height + NODE.below) + 1;
  return { width: rows.length * (NODE.width + NODE.right) - NODE.right + 2, height: most * (NODE.height + NODE.below) - NODE.below + 2 };
}

function edgePicture({ nodes, lines }) {
  const { width, height } = layered(nodes, lines);
  const most = lines[0].ns;
  const shorten = (name) => (name.length > NODE_LETTERS ? name.slice(0, NODE_LETTERS / 2) + "\u2026" + name.slice(1 - NODE_LETTERS / 2) : name);
  const path = ({ from, to }) => {
    const [x1, y1, x2, y2] = [nodes[from].x + NODE.width, nodes[from].y + NODE.height / 2, nodes[to].x, nodes[to].y + NODE.height / 2];
    const half = (x2 - x1) / 2;
    return `M ${x1} ${y1} C ${x1 + half} ${y1}, ${x2 - half} ${y2}, ${x2} ${y2}`;
  };
  const says = (line) => nodes[line.from].name + " waits for " + nodes[line.to].name + ": " + nanos(line.ns) + ", " + percent(line.share) + " of wall time";
  const drawn = [...lines].reverse().map((line) => svg("path", { class: "wait wait-" + nodes[line.to].what, d: path(line), "stroke-width": Math.max(1.5, 14 * (line.ns / most)) }, svg("title", {}, says(line))));
  const boxes = nodes.map((node) =>
    svg(
      "g",
      { class: node.isAgain ? "party again" : "party", transform: `translate(${node.x} ${node.y})` },
      svg("title", {}, node.name + (node.place ? ", " + node.place : "")),
      svg("rect", { width: NODE.width, height: NODE.height, rx: 6 }),
      svg("text", { x: 9, y: node.kind ? 16 : 24 }, shorten(node.name)),
      node.kind ? svg("text", { class: "tick", x: 9, y: 31 }, shorten(node.kind + (node.place ? " " + node.place.split("/").at(-1) : ""))) : null,
    ),
  );
  const label = "Picture of waits, from who waits on the left to who ends the wait on the right. " + lines.slice(0, 5).map(says).join("; ") + ". All are in the table.";
  return svg("svg", { class: "edges", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, drawn, boxes);
}

function edgeTable(many) {
  const { parties, edges } = data.edges;
  const party = (index) => {
    const { name, kind, place: at, editor } = parties[index];
    return [kind ? el("span", { class: "kind" }, kind + " ") : null, el("span", { class: kind ? "name" : null }, name), place(at, editor)];
  };
  const head = ["waits", "for", "where", "each request", "of wall time", "in all"];
  const rows = edges.slice(0, many).map((one) =>
    el("tr", {}, el("th", { scope: "row" }, party(one.waiter)), el("td", {}, party(one.waker)), el("td", {}, one.sites.map((site) => el("div", {}, site))), el("td", {}, one.ns_per_request === null ? "\u2013" : nanos(one.ns_per_request)), el("td", {}, percent(one.share)), el("td", {}, nanos(one.ns))),
  );
  const left = edges.length - many;
  const more = (event) => event.target.closest(".edge-table").replaceWith(edgeTable(many + 5 * EDGE_ROWS));
  return el(
    "div",
    { class: "edge-table" },
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Who waits for whom, as a table" }, el("table", { class: "waits" }, el("thead", {}, el("tr", {}, head.map((h) => el("th", { scope: "col" }, h)))), el("tbody", {}, rows))),
    left > 0 ? el("button", { type: "button", class: "more", onclick: more }, "Show more (" + left + " left)") : null,
  );
}

function whoWaits() {
  if (data.edges === null) return null;
  const pictured = picturedEdges();
  const { left_out } = data.edges;
  return el(
    "section",
    { "aria-labelledby": "edges" },
    el("h2", { id: "edges" }, "Who waits for whom"),
    el("p", { class: "hint" }, "Before the first experiment: each innermost span, or task outside of all spans, and what ended its waits. A line is as wide as its wait is long; a dashed box stands for one that is there already. The time of each request is a mean over those that have such a span. A lock, a channel or a semaphore is named by its function and the line that waits there, where samples tell."),
    pictured.others > 0 ? el("p", { class: "hint" }, "The picture has those with the most time; " + pictured.others + " others are one box.") : null,
    el("div", { class: "scroll flame-box", role: "region", tabindex: "0", "aria-label": "Picture of who waits for whom" }, edgePicture(pictured)),
    edgeTable(EDGE_ROWS),
    left_out > 0 ? el("p", { class: "hint" }, left_out + " shorter waits are left out.") : null,
  );
}
