// From an answer of the API to boxes and links: folded groups, columns on a locked path, sizes.
import { tableName } from "../format.js";

export const FOLD_ABOVE = 300;
const WIDEST = 34;

export const cut = (text, most = WIDEST) => (text.length <= most ? text : `${text.slice(0, Math.ceil(most / 2) - 1)}…${text.slice(-Math.floor(most / 2))}`);

export function groupOf(node) {
  if (node.type === "job") return `jobs of ${node.name.includes(".") ? node.name.split(".")[0] : node.namespace}`;
  if (node.table) return [node.catalog, node.database].filter(Boolean).join(".") || node.namespace;
  return node.namespace;
}
const lastPart = (node) => (node.type === "job" ? node.name : node.table || node.name.split("/").slice(-2).join("/") || node.name);

// One answer out of several: nodes and edges by their ids.
export function merged(answers) {
  const nodes = new Map(), edges = new Map();
  for (const one of answers) {
    for (const node of one.nodes) nodes.set(node.id, { ...nodes.get(node.id), ...node });
    for (const edge of one.edges) edges.set(`${edge.source} ${edge.target}`, edge);
  }
  const shown = (edge) => nodes.has(edge.source) && nodes.has(edge.target);
  return {
    nodes: [...nodes.values()], edges: [...edges.values()].filter(shown), asOf: answers[0]?.asOf,
    complete: answers.every((one) => one.complete), truncatedBy: answers.map((one) => one.truncatedBy).find(Boolean) || null,
  };
}

// Boxes and links. `folded`: groups that are one box; above FOLD_ABOVE boxes all groups are, but for `open` ones and the start's.
export function boxesOf(graph, { folded, open, closed, start, columns }) {
  const groups = new Map(), beyond = behind(graph, closed);
  for (const node of graph.nodes) {
    if (beyond.has(node.id)) continue;
    const name = groupOf(node);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(node);
  }
  const crowded = graph.nodes.length > FOLD_ABOVE;
  const isFolded = (name, members) => members.length > 1 && (folded.has(name) || (crowded && !open.has(name) && !members.some((one) => one.id === start)));
  const boxes = [], home = new Map();
  let hidden = beyond.size;
  for (const [name, members] of groups) {
    if (isFolded(name, members)) {
      const id = `group ${name}`;
      boxes.push({ id, kind: "group", title: cut(name), sub: `${members.length} folded`, group: name, members, width: 190, height: 46, frame: null });
      hidden += members.length;
      members.forEach((one) => home.set(one.id, id));
    } else {
      for (const node of members) {
        home.set(node.id, node.id);
        const cols = columns.get(node.id) || [];
        const title = cut(lastPart(node));
        const width = Math.max(104, Math.min(240, 30 + 7.2 * Math.max(title.length, ...cols.map((one) => one.length))));
        boxes.push({ id: node.id, kind: node.type, title, sub: node.type === "job" ? "" : cut(node.table ? [node.catalog, node.database].filter(Boolean).join(".") : node.namespace, 30), node, group: name, cols,
          width, height: 46 + 16 * Math.min(cols.length, 10) + (cols.length ? 6 : 0), frame: node.type === "job" ? null : name });
      }
    }
  }
  const links = new Map();
  for (const edge of graph.edges) {
    const source = home.get(edge.source), target = home.get(edge.target);
    if (!source || !target || source === target) continue;
    const key = `${source} ${target}`;
    const before = links.get(key);
    links.set(key, { key, source, target, edges: [...(before?.edges || []), edge], running: before?.running || edge.running, rule: edge.rule, old: (before ? before.old : true) && edge.inLatest === false });
  }
  return { boxes, links: [...links.values()], hidden, groups };
}

// What is only reached through nodes whose followers are hidden.
function behind(graph, closed) {
  const hidden = new Set();
  if (!closed.size) return hidden;
  const into = new Map();
  for (const edge of graph.edges) into.set(edge.target, [...(into.get(edge.target) || []), edge.source]);
  for (let before = -1; before !== hidden.size;) {
    before = hidden.size;
    for (const [target, sources] of into) if (!closed.has(target) && sources.every((one) => closed.has(one) || hidden.has(one))) hidden.add(target);
  }
  return hidden;
}

// Everything upstream and downstream of a box.
export function pathOf(links, id) {
  const on = new Set([id]);
  for (const [from, to] of [["source", "target"], ["target", "source"]]) {
    const seen = new Set([id]), waiting = [id];
    while (waiting.length) {
      const at = waiting.pop();
      for (const link of links) if (link[from] === at && !seen.has(link[to])) { seen.add(link[to]); waiting.push(link[to]); }
    }
    seen.forEach((one) => on.add(one));
  }
  return on;
}

// Between two boxes: what lies on some way from one to the other, in whichever direction there is one.
export function between(links, one, other) {
  const reach = (start, from, to) => {
    const seen = new Set([start]), waiting = [start];
    while (waiting.length) {
      const at = waiting.pop();
      for (const link of links) if (link[from] === at && !seen.has(link[to])) { seen.add(link[to]); waiting.push(link[to]); }
    }
    return seen;
  };
  for (const [a, b] of [[one, other], [other, one]]) {
    const down = reach(a, "source", "target");
    if (down.has(b)) { const up = reach(b, "target", "source"); return new Set([...down].filter((id) => up.has(id))); }
  }
  return new Set([one, other]);
}

export const mermaid = (boxes, links) => {
  const ids = new Map(boxes.map((box, i) => [box.id, `n${i}`]));
  const text = (box) => `"${(box.node ? (box.node.type === "job" ? box.node.name : tableName(box.node)) : box.title).replace(/["<>&#]/g, (c) => `#${c.charCodeAt(0)};`)}"`;
  return ["flowchart LR", ...boxes.map((box) => `  ${ids.get(box.id)}${box.kind === "job" ? `([${text(box)}])` : `[${text(box)}]`}`), ...links.map((link) => `  ${ids.get(link.source)} --> ${ids.get(link.target)}`), ""].join("\n");
};
