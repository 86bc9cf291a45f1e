// From an answer of the API to the boxes and links of a picture, with their sizes.
import { number, STATES, tableName } from "../format.js";

const TITLE_FONT = "13px system-ui, sans-serif";
const SUB_FONT = "12px system-ui, sans-serif";
const COLUMN_FONT = "12px monospace";
const WIDEST = 250;
const WIDEST_LINE = 110; // of a job's name
const FULL_COLUMN = 8;
export const LINE = 16;
const ruler = document.createElement("canvas").getContext("2d");

function widthOf(text, font = SUB_FONT) {
  ruler.font = font;
  return ruler.measureText(text).width;
}

// The text, shortened in the middle until it fits.
export function fitted(text, font = SUB_FONT, widest = WIDEST) {
  let shown = text;
  for (let length = text.length - 1; length > 4 && widthOf(shown, font) > widest; length -= 1) {
    shown = `${text.slice(0, Math.ceil(length / 2))}…${text.slice(-Math.floor(length / 2) + 1)}`;
  }
  return shown;
}

const databaseOf = (node) => [node.catalog, node.database].filter(Boolean).join(".");

function titleOf(node) {
  if (node.title) return node.title;
  if (node.type === "dataset" && node.catalog !== undefined) {
    return node.table || node.name.split("/").slice(-2).join("/") || node.name;
  }
  if (node.type === "rest" && node.types) {
    return `${number(node.nodes)} more ${node.types.dataset ? "tables" : "jobs"}`;
  }
  return node.name || "no namespace";
}

// States with their counts, the urgent ones first: "✕ 3 failed", "● 2 running".
export function urgentStates(states = {}) {
  const shown = [];
  for (const state of ["FAIL", "LOST", "ABORT", "RUNNING", "START"]) {
    const [tone, word, sign] = STATES[state];
    if (states[state]) shown.push({ tone, text: `${sign} ${number(states[state])} ${word}` });
  }
  return shown;
}

const plain = (text) => [{ tone: "", text }];

// The lines below the title of a box: each a list of texts with a tone.
function linesOf(node) {
  if (node.type === "job") {
    const [tone, word, sign] = STATES[node.state] || ["", "no run yet", ""];
    return [[{ tone, text: `${sign} ${word}`.trim() }]];
  }
  const urgent = urgentStates(node.states);
  const act = node.step === undefined ? "click to show them" : "click to list them";
  if (node.type === "rest") return [urgent.length ? urgent : plain(act)];
  if (node.catalog !== undefined) return [plain(databaseOf(node) || node.namespace)];
  if (node.type === "dataset" && urgent.length) return [urgent];
  if (node.type === "dataset") return node.within ? [] : [plain(node.namespace)]; // a frame says it
  const counts = plain(`${number(node.datasets)} tables · ${number(node.jobs)} jobs`);
  return urgent.length ? [counts, urgent] : [counts];
}

export const textOf = (line) => line.map((part) => part.text).join("  ");

const kindOf = (node) => (["job", "dataset", "rest"].includes(node.type) ? node.type : "place");

// A long name of a job, broken after the dot, slash or underscore nearest to its middle.
function inTwo(name) {
  const fromMiddle = (at) => Math.abs(at - name.length / 2);
  const [at] = [...name.matchAll(/[._/](?=.)/g)]
    .map((match) => match.index + 1)
    .sort((a, b) => fromMiddle(a) - fromMiddle(b));
  return at ? [name.slice(0, at), name.slice(at)] : [name];
}

function titlesOf(node, canBreak) {
  const title = titleOf(node);
  const isBroken = canBreak && node.type === "job" && widthOf(title, TITLE_FONT) > WIDEST_LINE;
  return (isBroken ? inTwo(title) : [title]).map((line) => fitted(line, TITLE_FONT));
}

function boxOf(node, columns, canBreak) {
  const titles = titlesOf(node, canBreak);
  const lines = linesOf(node).map((line) =>
    line.map((part) => ({ ...part, text: fitted(part.text) })),
  );
  const names = (columns.get(node.id) || []).slice(0, 10).map((name) => fitted(name, COLUMN_FONT));
  const widths = [
    ...titles.map((line) => widthOf(line, TITLE_FONT)),
    ...lines.map((line) => widthOf(textOf(line))),
    ...names.map((name) => widthOf(name, COLUMN_FONT)),
  ];
  return {
    id: node.id,
    kind: kindOf(node),
    title: titles.join(""),
    titles,
    lines,
    columns: names,
    node,
    step: node.step,
    frame: node.within === undefined ? null : node.within,
    width: Math.ceil(Math.max(72, ...widths) + (node.type === "job" ? 32 : 24)),
    height: 12 + LINE * (titles.length + lines.length + names.length) + (names.length ? 4 : 0),
  };
}

// A job whose latest run failed after the run that its edges are from: the latest run's state comes
// first, and `earlier` is what the edges are from.
function withLatestRuns({ nodes, edges, ...rest }) {
  const latest = new Map();
  for (const { source, target, latestRun } of edges) {
    if (!latestRun) continue;
    latest.set(source, latestRun);
    latest.set(target, latestRun);
  }
  const told = nodes.map((node) => {
    const run = node.type === "job" && latest.get(node.id);
    if (!run) return { ...node, earlier: null };
    const { state, endedAt } = run;
    return { ...node, state, startedAt: null, endedAt, earlier: node };
  });
  return { ...rest, nodes: told, edges };
}

// Several answers as one: a later answer wins.
export function merged(answers) {
  const nodes = new Map(),
    edges = new Map();
  for (const answer of answers.map(withLatestRuns)) {
    for (const node of answer.nodes) nodes.set(node.id, { ...nodes.get(node.id), ...node });
    for (const edge of answer.edges) edges.set(`${edge.source} ${edge.target}`, edge);
  }
  const isDrawn = (edge) => nodes.has(edge.source) && nodes.has(edge.target);
  return {
    ...answers.at(-1),
    nodes: [...nodes.values()],
    edges: [...edges.values()].filter(isDrawn),
  };
}

// Tables of one database stand in one frame, where the answer names none; a frame around all of
// them would say nothing.
function withFrames(graph) {
  if (graph.frames) return graph;
  const names = new Map();
  const tables = graph.nodes.filter((node) => node.type === "dataset" && node.step === undefined);
  for (const node of tables) {
    const name = databaseOf(node);
    if (name) names.set(name, (names.get(name) || 0) + 1);
  }
  const frames = [...names]
    .filter(([, count]) => count > 1 && count < tables.length)
    .map(([name]) => ({ id: name, name, within: null }));
  const open = new Set(frames.map((frame) => frame.id));
  const nodes = graph.nodes.map((node) => {
    const frame = node.type === "dataset" && databaseOf(node);
    return { ...node, within: open.has(frame) ? frame : null };
  });
  return { ...graph, nodes, frames };
}

// What stands beside a line: how many jobs or edges it joins, how the latest run ended that left it
// out or failed, or that it comes from an older run.
function textsOfLink({ edges }) {
  const jobs = edges.map((edge) => edge.jobs).filter((number) => number !== undefined);
  if (jobs.length) return [jobs.map(number).join(" ⇄ ")];
  if (edges[0].edges > 1) return [number(edges[0].edges)];
  const later = edges.map((edge) => edge.latestRun).find(Boolean);
  if (later) return ["latest run ", `${STATES[later.state][2]} ${STATES[later.state][1]}`];
  return edges.every((edge) => edge.inLatest === false) ? ["older run"] : [];
}

function labelOfLink(link) {
  const lines = textsOfLink(link);
  const width = lines.length && Math.max(...lines.map((line) => widthOf(line))) + 8;
  return { lines, width, height: LINE * lines.length };
}

// `columns`: the columns or snapshots to list in a table's box.
export function pictureOf(answer, columns) {
  const graph = withFrames(answer);
  const links = new Map();
  for (const edge of graph.edges) {
    const back = links.get(`${edge.target} ${edge.source}`);
    if (back) {
      back.both = true;
      back.edges.push(edge);
      continue;
    }
    const key = `${edge.source} ${edge.target}`;
    links.set(key, { key, source: edge.source, target: edge.target, edges: [edge], both: false });
  }
  // Two lines a name make a picture narrower, but a full column of boxes higher than the window.
  const inStep = new Map();
  for (const { step } of graph.nodes) inStep.set(step, (inStep.get(step) || 0) + 1);
  const canBreak = inStep.has(undefined) || Math.max(...inStep.values()) <= FULL_COLUMN;
  return {
    boxes: graph.nodes.map((node) => boxOf(node, columns, canBreak)),
    links: [...links.values()].map((link) => ({ ...link, label: labelOfLink(link) })),
    frames: graph.frames,
  };
}

export const jobsOf = (link) => link.edges.reduce((sum, edge) => sum + (edge.jobs || 0), 0);

// The keys of the links that are drawn of a dense map: the strongest of each box. The others appear
// with their box.
export function strongest({ links }) {
  const best = new Map();
  for (const link of [...links].sort((a, b) => jobsOf(a) - jobsOf(b))) {
    best.set(link.source, link.key);
    best.set(link.target, link.key);
  }
  return new Set(best.values());
}

function reached(links, start, from, to) {
  const ids = new Set([start]),
    waiting = [start];
  while (waiting.length) {
    const id = waiting.pop();
    for (const link of links) {
      const ends = link.both
        ? [
            [link.source, link.target],
            [link.target, link.source],
          ]
        : [[link[from], link[to]]];
      for (const [here, there] of ends) {
        if (here !== id || ids.has(there)) continue;
        ids.add(there);
        waiting.push(there);
      }
    }
  }
  return ids;
}

// Everything upstream and downstream of a box.
export function pathOf(links, id) {
  return new Set([
    ...reached(links, id, "source", "target"),
    ...reached(links, id, "target", "source"),
  ]);
}

// What lies on some way between two boxes, in whichever direction there is one.
export function between(links, one, other) {
  for (const [first, last] of [
    [one, other],
    [other, one],
  ]) {
    const down = reached(links, first, "source", "target");
    if (!down.has(last)) continue;
    const up = reached(links, last, "target", "source");
    return new Set([...down].filter((id) => up.has(id)));
  }
  return new Set([one, other]);
}

export function neighboursOf(links, id) {
  const near = new Set([id]);
  for (const link of links) {
    if (link.source === id) near.add(link.target);
    if (link.target === id) near.add(link.source);
  }
  return near;
}

export const labelOf = (box) =>
  box.kind === "dataset" && !box.node.title
    ? tableName(box.node)
    : box.kind === "job"
      ? box.node.name
      : box.title;

export function mermaid(boxes, links) {
  const ids = new Map(boxes.map((box, i) => [box.id, `n${i}`]));
  const text = (box) => `"${labelOf(box).replace(/["<>&#]/g, (c) => `#${c.charCodeAt(0)};`)}"`;
  const shape = (box) => (box.kind === "job" ? `([${text(box)}])` : `[${text(box)}]`);
  return [
    "flowchart LR",
    ...boxes.map((box) => `  ${ids.get(box.id)}${shape(box)}`),
    ...links.map(
      (link) => `  ${ids.get(link.source)} ${link.both ? "<-->" : "-->"} ${ids.get(link.target)}`,
    ),
    "",
  ].join("\n");
}
