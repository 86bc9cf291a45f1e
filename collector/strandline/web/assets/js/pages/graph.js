// The graph: a map by place, a whole graph where it is small, or the steps around a node.
import { useMemo, useRef, useState } from "preact/hooks";
import { address, get } from "../api.js";
import { absolute, ago, count, nodeId, number, ruleName, shortId, tableName } from "../format.js";
import {
  copy,
  csv,
  html,
  Id,
  JobLink,
  linkOf,
  Loaded,
  NoneYet,
  Problem,
  save,
  State,
  TableLink,
  Time,
  Word,
} from "../parts.js";
import { go, useData, useTitle, withParams } from "../state.js";
import {
  between,
  labelOf,
  merged,
  mermaid,
  pathOf,
  pictureOf,
  strongest,
  textOf,
  urgentStates,
} from "../graph/model.js";
import { savePng, saveSvg, usePlaces, View } from "../graph/view.js";

const WHOLE_UP_TO = 40; // tables and jobs; beyond, the map by place is drawn
const LISTED_AT_ONCE = 100;
const NOTHING = { nodes: [], edges: [], complete: true, totals: {} };

const listOf = (text) => (text || "").split("~").filter(Boolean);
const joined = (list) => list.join("~") || null;
const nothingThen = (error) => {
  if (error.status === 404) return NOTHING;
  throw error;
};

// A table of the map is called by the end of its name; the whole of it is in its id.
const withWholeName = (node) =>
  node.type === "dataset"
    ? {
        ...node,
        title: node.name,
        name: node.id.slice(nodeId("dataset", { ...node, name: "" }).length),
      }
    : node;

// Small graphs are drawn with all their tables and jobs, others by place.
async function loadAll({ under, state, asOf }, signal) {
  const map = await get("/lineage/map", { under, asOf }, signal);
  const isSmall = map.totals.datasets + map.totals.jobs <= WHOLE_UP_TO;
  if (!isSmall || under.length) return { ...map, nodes: map.nodes.map(withWholeName), isMap: true };
  return get("/graph", { state, asOf, limit: 2500 }, signal);
}

const loadAround = ({ node, pins, direction, depth, state, asOf }, signal) =>
  get("/lineage", { around: node, pin: pins, direction, depth, state, asOf }, signal);

/** @param {Record<string, string>} given */
async function loadLocked({ of, column, snapshot, asOf }, signal) {
  if (!of || !(column || snapshot)) return null;
  if (column)
    return get(
      "/lineage",
      { node: of, column, granularity: "column", direction: "both", asOf },
      signal,
    );
  const { nodes } = await get("/lineage", { node: of, depth: 0 }, signal);
  const { namespace, name } = nodes.find((one) => one.distance === 0);
  return get(
    "/snapshots/lineage",
    { namespace, name, snapshotId: snapshot, direction: "both" },
    signal,
  );
}

export function Graph({ params }) {
  /** @type {Record<string, string>} */
  const given = Object.fromEntries(params);
  const locked = useData(
    (signal) => loadLocked(given, signal),
    [given.column, given.snapshot, given.of, given.asOf],
    false,
  );
  const path = useMemo(() => pathIn(given.of ? locked.data : null), [locked.data, given.of]);
  const asked = {
    node: given.node,
    under: listOf(given.open),
    pins: [...listOf(given.pin), ...path.keys()],
    direction: given.direction || "both",
    depth: given.depth || (path.size ? 20 : 1),
    state: given.state || "recent",
  };
  const keys = [JSON.stringify(asked)];
  const load = (moment) => (signal) =>
    (asked.node ? loadAround : loadAll)({ ...asked, asOf: moment }, signal);
  const loadThen = (moment) => async (signal) =>
    moment ? load(moment)(signal).catch(nothingThen) : null;
  const known = useData(load(), keys);
  const past = useData(loadThen(given.asOf), [...keys, given.asOf], false);
  const before = useData(loadThen(given.since), [...keys, given.since], false);
  const isAt = (error) =>
    html`<div class="canvas"><div class="empty-note">
      ${
        error.status === 404 && asked.under.length
          ? html`What was opened here is not in the map any more.${" "}
            <a href=${withParams({ open: null })}>Show the map</a>`
          : html`<${Problem} error=${error} again=${known.reload} />`
      }</div></div>`;
  return html`<div class="graphpage">
    <${Toolbar} params=${params} asked=${asked} known=${known.data} />
    ${
      known.error && !known.data
        ? isAt(known.error)
        : known.data
          ? html`<${Drawn} known=${known.data} past=${given.asOf ? past.data : null}
            before=${given.since ? before.data : null} params=${params} asked=${asked}
              path=${path} />`
          : html`<div class="canvas"></div>`
    }</div>`;
}

const DIRECTIONS = [
  ["both", "up and down"],
  ["upstream", "upstream"],
  ["downstream", "downstream"],
];
const DEPTHS = [
  ["1", "1 job away"],
  ["2", "2 jobs away"],
  ["3", "3 jobs away"],
  ["5", "5 jobs away"],
];
const STATE_CHOICES = [
  ["recent", "of recent runs"],
  ["latest", "of the latest run"],
  ["running", "of running runs"],
];

function Toolbar({ params, asked, known }) {
  const isMap = known?.isMap;
  const choice = (name, label, options) => html`<label>${label}
    <select value=${params.get(name) || options[0][0]} onChange=${(event) =>
      go(withParams({ [name]: event.target.value === options[0][0] ? null : event.target.value }))}>
    ${options.map(
      ([value, text]) => html`<option value=${value}>
    ${text}</option>`,
    )}</select></label>`;
  const node = known?.nodes.find((one) => one.id === asked.node);
  const pins = listOf(params.get("pin"));
  const title = asked.node ? `Around ${node ? tableName(node) : "a node"}` : "All tables";
  useTitle(title);
  return html`<div class="toolbar"><h1>${title}</h1>
    ${
      asked.node &&
      html`<a href="/graph">all tables</a>
    ${choice("direction", "show", DIRECTIONS)}${choice("depth", "up to", DEPTHS)}`
    }
    ${!isMap && choice("state", html`<${Word} of="recent">edges<//>`, STATE_CHOICES)}
    ${
      isMap &&
      asked.under.length > 0 &&
      html`<button onClick=${() =>
        go(withParams({ open: null, selected: null }))}>close all</button>`
    }
    ${
      pins.length > 0 &&
      html`<button onClick=${() => go(withParams({ pin: null }))}>
    ${count(pins.length, "pin")} ✕</button>`
    }
    ${
      params.get("of") &&
      html`<button onClick=${() => go(withParams({ column: null, snapshot: null, of: null }))}>
        ${
          params.get("column")
            ? `column ${params.get("column")}`
            : `snapshot ${shortId(params.get("snapshot"))}`
        } ✕</button>`
    }</div>`;
}

const edgeKey = (edge) => `${edge.source} ${edge.target}`;

// Boxes and links of the picture that do not exist at the moment that is shown.
function ghostsOf(past, picture) {
  if (!past) return new Set();
  const nodes = new Set(past.nodes.map((node) => node.id)),
    edges = new Set(past.edges.map(edgeKey));
  const boxes = picture.boxes.filter((box) => !nodes.has(box.id)).map((box) => box.id);
  const links = picture.links.filter(
    (link) => !link.edges.some((edge) => edges.has(edgeKey(edge))),
  );
  return new Set([...boxes, ...links.map((link) => link.key)]);
}

function Drawn({ known, past, before, params, asked, path }) {
  const selected = params.get("selected"),
    pathTo = params.get("path"),
    asOf = params.get("asOf");
  const whole = useMemo(() => merged([before, known, past].filter(Boolean)), [known, past, before]);
  const picture = useMemo(() => pictureOf(whole, path), [whole, path]);
  const placed = usePlaces(picture);
  const handle = useRef(null),
    anchor = useRef(null);
  const ghosts = useMemo(() => ghostsOf(asOf ? past : null, picture), [asOf, past, picture]);
  const marks = useMemo(() => marked(past || known, before), [known, past, before]);
  const lit = useMemo(() => {
    if (path.size) return new Set([...path.keys(), ...jobsOnPath(picture.links, path)]);
    if (selected && pathTo) return between(picture.links, selected, pathTo);
    return selected && picture.boxes.some((box) => box.id === selected && box.kind !== "rest")
      ? pathOf(picture.links, selected)
      : null;
  }, [picture, selected, pathTo, path]);

  const boxWith = (id) => picture.boxes.find((box) => box.id === id);
  const open = (id) => {
    anchor.current = id;
    go(withParams({ open: joined([...asked.under, id]), selected: null, path: null }));
  };
  const close = (id) => {
    anchor.current = id;
    go(
      withParams({
        open: joined(stillOpen(asked.under, known.frames, id)),
        selected: null,
        path: null,
      }),
    );
  };
  const opens = (box) => box && known.isMap && box.kind !== "dataset";
  const select = (id, extend) => {
    if (opens(boxWith(id))) open(id);
    else if (extend && selected && id) go(withParams({ path: id }));
    else go(withParams({ selected: id, path: null }), Boolean(selected && id));
  };
  const centre = (id) => {
    const box = boxWith(id);
    if (opens(box)) open(id);
    else if (box && box.kind !== "rest")
      go(address("/graph", { node: id, state: params.get("state"), asOf }));
  };
  const mark = (id) => go(withParams({ selected: id, path: null }), true);
  const onKey = (event) =>
    walkByKey(event, { picture, placed, selected, mark, centre, close, handle });
  const box = boxWith(selected);
  if (!picture.boxes.length)
    return html`<${NothingDrawn} asOf=${asOf} />
      ${asOf && html`<${TimeBar} known=${known} asOf=${asOf} marks=${marks} />`}`;
  const shown = (lines) => html`<${Shown} known=${known} past=${asOf ? past : null} whole=${whole}
    asOf=${asOf} depth=${asked.depth} lines=${lines} />`;
  return html`<div class="canvas">
      <${View} picture=${picture} placed=${placed} isMap=${known.isMap} selected=${selected}
        start=${asked.node}
        on=${lit} marks=${marks} ghosts=${ghosts} anchor=${anchor.current} onSelect=${select}
          onCentre=${centre} onFold=${known.isMap ? close : null} onKey=${onKey} handle=${handle} />
      <div class="undercanvas">
      ${shown(
        placed.isDense
          ? linesOf(picture)
          : "Numbers beside lines count jobs. Click a box to open it.",
      )}
        <div class="zoomer">
        <button aria-label="Zoom in" onClick=${() => handle.current.by(1.3)}>+</button>
        <button aria-label="Zoom out" onClick=${() => handle.current.by(1 / 1.3)}>−</button>
        <button title="key 0" onClick=${() => handle.current.home()}>reset</button>
          <${Export} picture=${picture} handle=${handle} /></div></div></div>
    ${
      box
        ? html`<${Drawer} box=${box} params=${params} picture=${picture} asked=${asked} />`
        : html`<div class="neighbours drawer">${shown("")}
            <${Outline} picture=${picture} open=${known.isMap ? open : null} /></div>`
    }
    <${TimeBar} known=${known} asOf=${asOf} since=${params.get("since")} marks=${marks}
      isMap=${known.isMap} />`;
}

// What stays open when a frame closes: the other frames, and the one around it.
function stillOpen(under, frames, id) {
  const around = new Map(frames.map((frame) => [frame.id, frame.within]));
  const isInside = (frame) => frame && (frame === id || isInside(around.get(frame)));
  const kept = under.filter((one) => around.has(one) && !isInside(one));
  const outer = around.get(id);
  return outer && !kept.includes(outer) ? [...kept, outer] : kept;
}

const NothingDrawn = ({ asOf }) => html`<div class="canvas"><div class="empty-note"><h2>
  ${asOf ? "No lineage at that moment" : "No lineage yet"}</h2>
  <p>${
    asOf
      ? html`<a href=${withParams({ asOf: null })}>Show the lineage of now.</a>`
      : html`<${NoneYet} of="jobs and tables" />`
  }</p></div></div>`;

// The columns, or the snapshots, on a locked path, by table.
function pathIn(locked) {
  const found = new Map();
  for (const one of locked?.nodes || []) {
    const id = nodeId("dataset", one);
    if (!found.has(id)) found.set(id, []);
    if (one.column) found.get(id).push(one.column);
    if (one.snapshotId)
      found
        .get(id)
        .push(`${shortId(one.snapshotId)}${one.barrierId === null ? "" : `  b ${one.barrierId}`}`);
  }
  return found;
}

// Jobs between two tables of the path.
function jobsOnPath(links, path) {
  const reads = new Set(links.filter((link) => path.has(link.source)).map((link) => link.target));
  const writes = new Set(links.filter((link) => path.has(link.target)).map((link) => link.source));
  for (const link of links.filter((one) => one.both)) {
    if (path.has(link.source)) writes.add(link.target);
    if (path.has(link.target)) reads.add(link.source);
  }
  return [...reads].filter((job) => writes.has(job));
}

function marked(known, before) {
  const marks = new Map();
  if (!before) return marks;
  const old = new Set(before.nodes.map((one) => one.id)),
    now = new Set(known.nodes.map((one) => one.id));
  for (const id of now) if (!old.has(id)) marks.set(id, "added");
  for (const id of old) if (!now.has(id)) marks.set(id, "removed");
  return marks;
}

// How much of everything is drawn, in numbers.
function Shown({ known, past, whole, asOf, depth, lines }) {
  const of = past || known;
  const cut = [];
  if (!whole.complete) cut.push(cutBy(whole.truncatedBy, depth));
  if (of.isMap) cut.push(lines);
  if (whole.hidden?.access)
    cut.push(`${number(whole.hidden.access)} more are hidden from this key.`);
  const moment = asOf ? (past ? " at that moment" : " now") : "";
  return html`<div class="hidden-note" role="status">
    ${[shownOf(of, whole, moment, past), ...cut].join(" ")}</div>`;
}

const cutBy = (reason, depth) =>
  reason === "depth"
    ? `More lies further than ${count(Number(depth), "job")} away.`
    : `Not everything is shown: cut by ${reason}.`;

// How many lines of a dense map are drawn.
function linesOf(picture) {
  const [all, drawn] = [picture.links.length, strongest(picture).size];
  if (drawn === all)
    return `${count(all, "line")} drawn: point at a box for their numbers of jobs.`;
  const lines = `${number(drawn)} of ${count(all, "line")} drawn`;
  return `${lines}, the strongest of each box: point at one for the others.`;
}

function shownOf(of, whole, moment, past) {
  if (of.isMap) {
    const all = `${count(of.totals.datasets, "table")} and ${count(of.totals.jobs, "job")}`;
    const boxes = count(of.nodes.length, "box", "boxes");
    return `${all}${moment} in ${boxes}.`;
  }
  const rest = of.nodes
    .filter((node) => node.type === "rest")
    .reduce((sum, node) => sum + node.nodes, 0);
  if (rest) {
    const shown = of.nodes.filter((node) => node.type !== "rest").length;
    return `${number(shown)} of ${number(shown + rest)} tables and jobs shown${moment}.`;
  }
  const nodes = new Set(of.nodes.map((node) => node.id)),
    edges = new Set(of.edges.map(edgeKey));
  const moreNodes = whole.nodes.filter((node) => !nodes.has(node.id)).length;
  const moreEdges = whole.edges.filter((edge) => !edges.has(edgeKey(edge))).length;
  const tables = of.nodes.filter((node) => node.type === "dataset").length;
  const jobs = of.nodes.length - tables;
  const edgeCount = count(of.edges.length, "edge");
  const text = `${count(tables, "table")}, ${count(jobs, "job")}, ${edgeCount}${moment}`;
  if (!moreNodes && !moreEdges) return whole.complete ? `${text}; all shown.` : `${text}.`;
  const others = `${count(moreNodes, "more box", "more boxes")}, ${count(moreEdges, "more edge")}`;
  return `${text}. ${others} ${past ? "at other moments, drawn faintly" : "from before"}.`;
}

function Export({ picture, handle }) {
  const row = (edge) => [
    edge.source,
    edge.target,
    edge.rule,
    edge.state,
    edge.since,
    edge.jobs ?? edge.edges,
  ];
  const act = {
    svg: () => saveSvg(handle.current),
    png: () => savePng(handle.current),
    mermaid: () => copy(mermaid(picture.boxes, picture.links), "copied as Mermaid"),
    csv: () =>
      save(
        "lineage.csv",
        csv([
          ["source", "target", "rule", "state", "since", "count"],
          ...picture.links.flatMap((link) => link.edges.map(row)),
        ]),
        "text/csv",
      ),
  };
  return html`<select aria-label="Save the graph" value="" onChange=${(event) => {
    act[event.target.value]?.();
    event.target.value = "";
  }}>
    <option value="">save…</option>
    <option value="svg">SVG</option>
    <option value="png">PNG</option>
    <option value="mermaid">Mermaid (copy)</option>
    <option value="csv">edges as CSV</option></select>`;
}

const DISTANCES = {
  ArrowRight: (p, here) => [p.x - here.x, p.y - here.y],
  ArrowLeft: (p, here) => [here.x - p.x, p.y - here.y],
  ArrowDown: (p, here) => [p.y - here.y, p.x - here.x],
  ArrowUp: (p, here) => [here.y - p.y, p.x - here.x],
};

// The nearest box in the direction of an arrow key; along links where there are some.
function nextByArrow(key, { picture, placed, selected }) {
  const here = placed.places[selected];
  if (!here) return picture.boxes[0]?.id;
  const isSideways = key === "ArrowRight" || key === "ArrowLeft";
  const linked = new Set(
    picture.links.flatMap((link) =>
      link.source === selected ? [link.target] : link.target === selected ? [link.source] : [],
    ),
  );
  let best = null,
    least = Infinity;
  for (const [id, place] of Object.entries(placed.places)) {
    const [ahead, aside] = DISTANCES[key](place, here);
    if (id === selected || ahead < 12) continue;
    const distance = ahead + 2 * Math.abs(aside) + (isSideways && !linked.has(id) ? 1e6 : 0);
    if (distance < least) {
      best = id;
      least = distance;
    }
  }
  return best;
}

function walkByKey(event, { picture, placed, selected, mark, centre, close, handle }) {
  const box = picture.boxes.find((one) => one.id === selected);
  if (DISTANCES[event.key]) {
    event.preventDefault();
    const next = nextByArrow(event.key, { picture, placed, selected });
    if (next) mark(next);
  } else if (event.key === "Enter" && box) centre(box.id);
  else if (event.key === "e" && box?.kind !== "dataset" && box) centre(box.id);
  else if (event.key === "c" && box?.node.within && box.node.datasets !== undefined)
    close(box.node.within);
  else if (event.key === "p" && selected)
    go(
      withParams({
        path: selected,
        selected: new URLSearchParams(location.search).get("mark") || selected,
        mark: null,
      }),
    );
  else if (event.key === "m" && selected) go(withParams({ mark: selected }), true);
  else if (event.key === "f" && selected) handle.current.show(selected);
  else if (event.key === "Escape") mark(null);
  else if (event.key === "+" || event.key === "-")
    handle.current.by(event.key === "+" ? 1.3 : 1 / 1.3);
  else if (event.key === "0") handle.current.home();
}

const stepName = (step) =>
  step ? `${count(Math.abs(step), "step")} ${step < 0 ? "upstream" : "downstream"}` : "Here";

// The picture as a list, for narrow screens.
function Outline({ picture, open }) {
  const parts = new Map();
  for (const box of picture.boxes) {
    const name = box.step === undefined ? "Tables and jobs" : stepName(box.step);
    parts.set(name, [...(parts.get(name) || []), box]);
  }
  const row = (box) => html`<li class="row spread">
    ${
      box.kind === "place" && open
        ? html`<button class="icon" onClick=${() => open(box.id)}>
    ${box.title} ›</button>`
        : html`<a href=${withParams({ selected: box.id })}>${labelOf(box)}</a>`
    }
    <span class="dim small">
    ${
      box.kind === "job"
        ? html`<${State} state=${box.node.state} />`
        : box.lines.map(textOf).join(" · ")
    }</span></li>`;
  return [...parts].map(
    ([name, boxes]) => html`<h2>${name}</h2><ul class="plain">${boxes.map(row)}</ul>`,
  );
}

function Drawer({ box, params, picture, asked }) {
  const close = html`<button class="icon" aria-label="Close" onClick=${() =>
    go(withParams({ selected: null, path: null }))}>✕</button>`;
  const head = (name) => html`<div class="row spread head"><h2>${name}</h2>${close}</div>`;
  if (box.kind === "rest" && box.node.step !== undefined)
    return html`<aside class="drawer" aria-label="Selected">${head(box.title)}
      <${Rest} node=${box.node} asked=${asked} params=${params} /></aside>`;
  if (box.kind === "rest" || box.kind === "place") {
    return html`<aside class="drawer" aria-label="Selected">${head(box.title)}<p>
      ${count(box.node.datasets, "table")}${
        box.node.jobs !== undefined && `, ${count(box.node.jobs, "job")}`
      }</p><p>${textOf(urgentStates(box.node.states))}</p>
      <button onClick=${() =>
        go(
          withParams({ open: joined([...asked.under, box.id]), selected: null }),
        )}>open</button></aside>`;
  }
  const pins = listOf(params.get("pin"));
  return html`<aside class="drawer" aria-label="Selected">${head(labelOf(box))}<p class="dim small">
    ${box.node.namespace}</p>
    <p class="row"><a class="button" href=${linkOf(box.kind, box.node)}>open</a>
    ${
      box.id !== asked.node &&
      html`<a class="button" href=${address("/graph", { node: box.id })}>graph around it</a>`
    }
      ${
        pins.includes(box.id) &&
        html`<button onClick=${() =>
          go(withParams({ pin: joined(pins.filter((id) => id !== box.id)) }))}>unpin</button>`
      }</p>
    ${
      box.kind === "job"
        ? html`<${JobFacts} node=${box.node} />`
        : html`<${TableFacts} node=${box.node} params=${params} />`
    }
    <${Linked} box=${box} picture=${picture} /></aside>`;
}

function Linked({ box, picture }) {
  const rows = picture.links
    .filter((link) => link.source === box.id || link.target === box.id)
    .map((link) => {
      const other = picture.boxes.find(
        (one) => one.id === (link.source === box.id ? link.target : link.source),
      );
      const edge = link.edges[0];
      const how = edge.jobs !== undefined ? count(edge.jobs, "job") : `from ${ruleName(edge.rule)}`;
      const seen =
        edge.lastSeen &&
        `seen ${ago(edge.lastSeen)}${edge.runs ? ` in ${count(edge.runs, "run")}` : ""}`;
      const sign = link.both ? "⇄" : link.source === box.id ? "→" : "←";
      return html`<li>${sign} <a href=${withParams({ selected: other.id })}>
        ${labelOf(other)}</a> <span class="dim small" title=${seen}>${how}</span></li>`;
    });
  if (!rows.length) return null;
  return html`<h2>Reads from and feeds</h2><ul class="plain">${rows}</ul>`;
}

const stateOf = (node) => (node.latestRun || node).state;

// What one box stands for: searchable, each with a pin.
function Rest({ node, asked, params }) {
  const [text, setText] = useState(""),
    [state, setState] = useState(""),
    [most, setMost] = useState(LISTED_AT_ONCE);
  const { node: around, pins, direction, depth, state: edges } = asked;
  const asOf = params.get("asOf");
  const found = useData(
    (signal) =>
      get(
        "/lineage",
        {
          around,
          pin: pins,
          direction,
          depth,
          state: edges,
          asOf,
          step: node.step,
          cursor: node.nextCursor,
          limit: 5000,
        },
        signal,
      ),
    [node.id, node.nextCursor, JSON.stringify(asked), asOf],
    false,
  );
  const pinned = listOf(params.get("pin"));
  const pin = (id) => go(withParams({ pin: joined([...pinned, id]), selected: id }));
  return html`<${Loaded} of=${found}>${({ items }) => {
    const named = items.filter(
      (one) =>
        `${tableName(one)} ${one.namespace}`.toLowerCase().includes(text.toLowerCase()) &&
        (!state || stateOf(one) === state),
    );
    const states = Object.keys(node.states).filter((name) => name !== "NONE");
    return html`<input type="search" placeholder="find one" aria-label="Find one of these"
      value=${text} onInput=${(event) => setText(event.target.value)} />
      ${
        states.length > 1 &&
        html`<p class="row">
      ${states.map(
        (name) =>
          html`<button class="chip" aria-pressed=${state === name} onClick=${() =>
            setState(
              state === name ? "" : name,
            )}><${State} state=${name} /> ${number(node.states[name])}</button>`,
      )}</p>`
      }
      <p class="dim small" role="status">
      ${number(named.length)} of ${number(items.length)}${
        named.length > most ? `; the first ${most} are listed` : ""
      }</p>
      <ul class="plain rest">${named.slice(0, most).map(
        (one) => html`<li><span>
      ${
        one.type === "job" ? html`<${JobLink} of=${one} />` : html`<${TableLink} of=${one} />`
      }${stateOf(one) && html` <${State} state=${stateOf(one)} />`}</span>
        <button onClick=${() => pin(one.id)}>pin</button></li>`,
      )}</ul>
      ${
        named.length > most &&
        html`<button onClick=${() => setMost(most + LISTED_AT_ONCE)}>more</button>`
      }`;
  }}<//>`;
}

function JobFacts({ node }) {
  const detail = useData(
    (signal) => get("/jobs/detail", { namespace: node.namespace, name: node.name }, signal),
    [node.id],
    false,
  );
  return html`<p>
    <${State} state=${node.state} /> ${
      node.startedAt && html`since <${Time} at=${node.startedAt} />`
    }${node.endedAt && html`, ended <${Time} at=${node.endedAt} />`}</p>
    ${
      node.earlier &&
      html`<p class="dim">Its edges are of an earlier run: <${State}
        state=${node.earlier.state} /> ended <${Time} at=${node.earlier.endedAt} /></p>`
    }
    <${Loaded} of=${detail}>
    ${(job) =>
      html`${
        job.group &&
        html`<p>group <a href=${address("/group", { name: job.group })}>
    ${job.group}</a></p>`
      }${job.facets.sql?.query && html`<pre tabindex="0">${job.facets.sql.query}</pre>`}`}<//>`;
}

function TableFacts({ node, params }) {
  const detail = useData(
    (signal) => get("/datasets/detail", { namespace: node.namespace, name: node.name }, signal),
    [node.id],
    false,
  );
  const snaps = useData(
    (signal) =>
      get("/datasets/snapshots", { namespace: node.namespace, name: node.name, limit: 1 }, signal),
    [node.id],
  );
  const [find, setFind] = useState("");
  const [shown, show] = useState(10);
  return html`<${Loaded} of=${snaps}>
    ${({ items }) =>
      items.length
        ? html`<p>newest snapshot <${Id} id=${items[0].snapshotId} />
    ${
      items[0].barrierId !== null &&
      html` <span class="chip aligned">barrier ${items[0].barrierId}</span>`
    }<br /><span class="dim">committed <${Time} at=${items[0].committedAt} /></span></p>`
        : html`<p class="dim">No snapshot of it is known.</p>`}<//>
    <${Loaded} of=${detail}>${(table) => {
      const fields = (table.facets.schema?.fields || []).filter((one) =>
        one.name.toLowerCase().includes(find.toLowerCase()),
      );
      return html`<h2>Columns</h2>
        ${
          (table.facets.schema?.fields || []).length > 10 &&
          html`<input type="search" placeholder="find a column" aria-label="Find a column"
            value=${find} onInput=${(e) => setFind(e.target.value)} />`
        }
      ${fields.length === 0 && html`<p class="dim">No columns are known.</p>`}
      <div class="row">
      ${fields
        .slice(0, shown)
        .map(
          (one) =>
            html`<button aria-pressed=${
              params.get("column") === one.name && params.get("of") === node.id
            } onClick=${() =>
              go(
                withParams({ column: one.name, snapshot: null, of: node.id }),
              )}>${one.name}</button>`,
        )}</div>
      ${
        fields.length > shown &&
        html`<button class="icon" onClick=${() => show(shown + 10)}>
      ${fields.length - shown} more</button>`
      }
      <p class="small">
      <a href=${address("/impact", {
        namespace: node.namespace,
        name: node.name,
      })}>impact if dropped</a></p>`;
    }}<//>`;
}

// The moment that is shown; ticks are where the lineage changed: edges that began, runs that ended.
function TimeBar({ known, asOf, since, marks, isMap }) {
  const [now] = useState(() => Date.now());
  const moments = useMemo(
    () =>
      [
        ...new Set(
          [
            ...known.edges.map((one) => one.since),
            ...known.nodes.flatMap((one) => [one.startedAt, one.endedAt]),
          ]
            .filter(Boolean)
            .map(Date.parse)
            .filter((one) => one <= now), // clocks of senders may be ahead
        ),
      ].sort((a, b) => a - b),
    [known, now],
  );
  const first = Math.min(moments[0] ?? now - 7 * 86400e3, now - 60e3) - 1000;
  const at = asOf || since ? Date.parse(asOf || since) : now;
  const [dragged, drag] = useState(null);
  const name = since ? "since" : "asOf";
  const set = (value) => {
    drag(null);
    go(withParams({ [name]: value >= now - 1000 ? null : new Date(value).toISOString() }), true);
  };
  const local = (value) =>
    new Date(value - new Date(value).getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
  const added = [...marks.values()].filter((one) => one === "added").length,
    removed = marks.size - added;
  return html`<div class="timebar"><label class="small dim" for="moment">
    ${since ? "changed since" : "as of"}</label>
    <div class="slider" title="each mark: lineage changed, or a run started or ended">
    <input id="moment" type="range" min=${first} max=${now} step="1000" value=${dragged ?? at}
      aria-valuetext=${absolute(
        new Date(dragged ?? at).toISOString(),
      )} onInput=${(e) => drag(Number(e.target.value))}
        onChange=${(e) => set(Number(e.target.value))} />
      <div class="ticks">
      ${moments
        .slice(-300)
        .map(
          (one) => html`<i style=${{ left: `${(100 * (one - first)) / (now - first)}%` }}></i>`,
        )}</div></div>
    <span class="small nowrap">
    ${asOf || since || dragged ? absolute(new Date(dragged ?? at).toISOString()) : "now"}</span>
    <input type="datetime-local" aria-label="Choose the moment" value=${local(dragged ?? at)}
      onChange=${(e) => e.target.value && set(new Date(e.target.value).getTime())} />
    ${
      (asOf || since) &&
      html`<button onClick=${() => go(withParams({ asOf: null, since: null }))}>now</button>`
    }
    ${
      !isMap &&
      html`<button aria-pressed=${Boolean(since)} onClick=${() =>
        go(
          withParams(
            since
              ? { since: null }
              : {
                  since: new Date(asOf ? Date.parse(asOf) : now - 86400e3).toISOString(),
                  asOf: null,
                },
          ),
        )}>what changed?</button>`
    }
    ${since && html`<span class="small">${added} added, ${removed} removed</span>`}</div>`;
}
