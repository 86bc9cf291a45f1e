// The graph: left to right, folded where it is large, at any moment; a click locks a path.
import { useMemo, useRef, useState } from "preact/hooks";
import { address, get } from "../api.js";
import { absolute, ago, count, nodeId, shortId, tableName } from "../format.js";
import { copy, csv, html, Id, JobLink, linkOf, Loaded, Problem, save, State, TableLink, Time } from "../parts.js";
import { go, useData, withParams } from "../state.js";
import { between, boxesOf, FOLD_ABOVE, groupOf, merged, mermaid, pathOf } from "../graph/model.js";
import { savePng, saveSvg, usePlaces, View } from "../graph/view.js";

const words = (text) => new Set((text || "").split("~").filter(Boolean));
const joined = (set) => [...set].join("~") || null;

const load = (given, node) => async (signal) => (node ? merged([await get("/lineage", { ...given, node, limit: 5000 }, signal)]) : get("/graph", { state: given.state, asOf: given.asOf, limit: 2500 }, signal));

export function Graph({ params }) {
  const node = params.get("node"), asOf = params.get("asOf"), diff = params.get("since"), state = params.get("state") || "recent";
  const direction = params.get("direction") || "both", depth = params.get("depth");
  const given = { direction, depth, state };
  const known = useData(load(given, node), [node, direction, depth, state]);
  const then = (moment) => async (signal) => (moment ? load({ ...given, asOf: moment }, node)(signal).catch((e) => { if (e.status === 404) return { nodes: [], edges: [], complete: true }; throw e; }) : null);
  const past = useData(then(asOf), [node, direction, depth, state, asOf], false);
  const before = useData(then(diff), [node, direction, depth, state, diff], false);
  const column = params.get("column"), snapshot = params.get("snapshot"), of = params.get("of");
  const locked = useData(async (signal) => {
    if (!of || !(column || snapshot)) return null;
    if (column) return get("/lineage", { node: of, column, granularity: "column", direction: "both", asOf }, signal);
    const table = (await get("/lineage", { node: of, depth: 0 }, signal)).nodes.find((one) => one.distance === 0);
    return get("/snapshots/lineage", { namespace: table.namespace, name: table.name, snapshotId: snapshot, direction: "both" }, signal);
  }, [column, snapshot, of, asOf], false);
  return html`<div class="graphpage"><${Toolbar} params=${params} node=${node} />
    ${known.error && !known.data ? html`<div class="canvas"><div class="hidden-note"><${Problem} error=${known.error} again=${known.reload} /></div></div>` : known.data ? html`<${Drawn} known=${known.data} past=${asOf ? past.data : null} before=${diff ? before.data : null} asOf=${asOf} since=${diff} params=${params} start=${node} locked=${of ? locked.data : null} />` : html`<div class="canvas" aria-busy="true"></div>`}</div>`;
}

function Toolbar({ params, node }) {
  const set = (changes) => go(withParams(changes));
  const choice = (name, options, fallback) => html`<select aria-label=${name} value=${params.get(name) || fallback} onChange=${(e) => set({ [name]: e.target.value === fallback ? null : e.target.value })}>${options.map(([value, label]) => html`<option value=${value}>${label}</option>`)}</select>`;
  return html`<div class="toolbar"><strong>${node ? html`${node.split(":")[0] === "job" ? "Around a job" : "Around a table"}` : "All tables"}</strong>
    ${node && html`${choice("direction", [["both", "up and down"], ["upstream", "upstream"], ["downstream", "downstream"]], "both")}
    ${choice("depth", [["", "any depth"], ["1", "1 job"], ["2", "2 jobs"], ["3", "3 jobs"], ["5", "5 jobs"]], "")}<a href="/graph">all tables</a>`}
    ${choice("state", [["recent", "the last runs"], ["latest", "the latest run"], ["running", "what runs now"]], "recent")}
    ${params.get("of") && html`<button onClick=${() => set({ column: null, snapshot: null, of: null })}>${params.get("column") ? `column ${params.get("column")}` : `snapshot ${shortId(params.get("snapshot"))}`} ✕</button>`}</div>`;
}

function Drawn({ known, past, before, asOf, since, params, start, locked }) {
  const selected = params.get("selected"), pathTo = params.get("path");
  const folded = words(params.get("folded")), open = words(params.get("open")), closed = words(params.get("closed"));
  const columns = useMemo(() => pathIn(locked), [locked]);
  const whole = useMemo(() => merged([before, past, known].filter(Boolean)), [known, past, before]);
  const model = useMemo(() => boxesOf(whole, { folded, open, closed, start: start || "", columns }), [whole, params.get("folded"), params.get("open"), params.get("closed"), start, columns]);
  const placed = usePlaces(model.boxes, model.links);
  const fit = useRef(null);
  const there = useMemo(() => (asOf && past ? new Set(past.nodes.map((one) => one.id)) : null), [asOf, past]);
  const ghosts = useMemo(() => {
    if (!there) return new Set();
    const edges = new Set(past.edges.map(edgeId));
    return new Set([...model.boxes.filter((box) => (box.members ? !box.members.some((one) => there.has(one.id)) : !there.has(box.id))).map((box) => box.id), ...model.links.filter((link) => !link.edges.some((one) => edges.has(edgeId(one)))).map((link) => link.key)]);
  }, [there, model]);
  const marks = useMemo(() => marked(past || known, before), [known, past, before]);
  const onPath = useMemo(() => {
    if (locked) return new Set([...columns.keys(), ...model.links.filter((link) => columns.has(link.source) || columns.has(link.target)).flatMap((link) => jobsBetween(link, model.links, columns))]);
    if (selected && pathTo) return between(model.links, selected, pathTo);
    return selected ? pathOf(model.links, selected) : null;
  }, [model, selected, pathTo, locked, columns]);
  const atPast = asOf && past ? new Map(past.nodes.map((one) => [one.id, one])) : null;
  const boxes = atPast ? model.boxes.map((box) => (box.node && atPast.has(box.id) ? { ...box, node: { ...box.node, ...atPast.get(box.id) } } : box)) : model.boxes;
  const select = (id, extend) => (extend && selected && id ? go(withParams({ path: id })) : go(withParams({ selected: id, path: null }), Boolean(selected && id)));
  const close = (id, shut) => { const c = new Set(closed); if (shut) c.add(id); else c.delete(id); go(withParams({ closed: joined(c) })); };
  const fold = (name, shut) => {
    const f = new Set(folded), o = new Set(open);
    if (shut) { f.add(name); o.delete(name); } else { f.delete(name); o.add(name); }
    go(withParams({ folded: joined(f), open: joined(o), selected: shut ? `group ${name}` : null }));
  };
  const centre = (id) => {
    const box = model.boxes.find((one) => one.id === id);
    if (!box) return;
    if (box.kind === "group") fold(box.group, false); else go(address("/graph", { node: id, state: params.get("state"), asOf }));
  };
  const onKey = (event) => walkByKey(event, { model, placed, selected, select, centre, fold, close, fit });
  const box = boxes.find((one) => one.id === selected);
  return html`<div class="canvas">${model.boxes.length === 0 && html`<div class="hidden-note">Nothing to draw: no edge is known here${asOf ? " at that moment" : ""}.</div>`}
      <${View} boxes=${boxes} links=${model.links} placed=${placed} selected=${selected} start=${start} on=${onPath} marks=${marks} ghosts=${ghosts} onSelect=${select} onCentre=${centre} onKey=${onKey} fit=${fit} />
      <${Hidden} known=${known} past=${asOf ? past : null} whole=${whole} asOf=${asOf} model=${model} />
      <div class="zoomer"><button aria-label="Zoom in" onClick=${() => fit.current.by(1.3)}>+</button><button aria-label="Zoom out" onClick=${() => fit.current.by(1 / 1.3)}>−</button><button onClick=${() => fit.current.whole()}>fit</button>
        <${Export} model=${model} fit=${fit} /></div></div>
    ${box ? html`<${Drawer} box=${box} fold=${fold} close=${close} closed=${closed} params=${params} model=${model} />` : html`<div class="neighbours drawer"><h2>Tables and jobs</h2><ul class="plain">${model.boxes.map((one) => html`<li><a href=${withParams({ selected: one.id })}>${one.node && one.kind !== "job" ? tableName(one.node) : one.title}</a> <span class="dim small">${one.kind}</span></li>`)}</ul></div>`}
    <${TimeBar} known=${known} asOf=${asOf} since=${since} marks=${marks} />`;
}

// The columns, or the snapshots, on a locked path, by table.
function pathIn(locked) {
  const found = new Map();
  for (const one of locked?.nodes || []) {
    const id = nodeId("dataset", one);
    if (!found.has(id)) found.set(id, []);
    if (one.column) found.get(id).push(one.column);
    if (one.snapshotId) found.get(id).push(`${shortId(one.snapshotId)}${one.barrierId === null ? "" : `  b ${one.barrierId}`}`);
  }
  return found;
}
const jobsBetween = (link, links, columns) => {
  const job = columns.has(link.source) ? link.target : link.source;
  const into = links.some((one) => one.target === job && columns.has(one.source)), out = links.some((one) => one.source === job && columns.has(one.target));
  return into && out ? [job] : [];
};
function marked(known, before) {
  const marks = new Map();
  if (!before) return marks;
  const old = new Set(before.nodes.map((one) => one.id)), now = new Set(known.nodes.map((one) => one.id));
  for (const id of now) if (!old.has(id)) marks.set(id, "added");
  for (const id of old) if (!now.has(id)) marks.set(id, "removed");
  return marks;
}

const edgeId = (one) => `${one.source} ${one.target}`;

// What is of the moment that is shown, and how much more is drawn beside it.
function Hidden({ known, past, whole, asOf, model }) {
  const of = past || known, nodes = new Set(of.nodes.map((one) => one.id)), edges = new Set(of.edges.map(edgeId)), notes = [];
  const more = [[whole.nodes.filter((one) => !nodes.has(one.id)).length, "node"], [whole.edges.filter((one) => !edges.has(edgeId(one))).length, "edge"]].filter(([n]) => n);
  if (more.length) notes.push(`${more.map(([n, what]) => `${n} more ${n === 1 ? what : `${what}s`}`).join(", ")} ${past ? "at other moments, drawn faintly" : "from before"}`);
  if (model.hidden) notes.push(`${count(model.hidden, "box", "boxes")} of ${whole.nodes.length} folded${whole.nodes.length > FOLD_ABOVE ? ` (above ${FOLD_ABOVE} boxes frames fold by themselves)` : ""}: double click or e opens one`);
  if (!whole.complete) notes.push(`not everything is shown: cut by ${whole.truncatedBy}`);
  return html`<div class="hidden-note" role="status">${count(of.nodes.length, "node")}, ${count(of.edges.length, "edge")}${asOf ? (past ? " at that moment" : " now") : ""}${notes.length ? `. ${notes.join(". ")}` : "; all shown"}</div>`;
}

function Export({ model, fit }) {
  const edges = () => csv([["source", "target", "rule", "state", "since"], ...model.links.flatMap((link) => link.edges.map((one) => [one.source, one.target, one.rule, one.state, one.since]))]);
  const act = { svg: () => saveSvg(fit.current), png: () => savePng(fit.current), mermaid: () => copy(mermaid(model.boxes, model.links), "copied as Mermaid"), csv: () => save("lineage.csv", edges(), "text/csv") };
  return html`<select aria-label="Take the graph away" value="" onChange=${(e) => { act[e.target.value]?.(); e.target.value = ""; }}><option value="">save…</option><option value="svg">SVG</option><option value="png">PNG</option><option value="mermaid">Mermaid (copy)</option><option value="csv">edges as CSV</option></select>`;
}

function walkByKey(event, { model, placed, selected, select, centre, fold, close, fit }) {
  const at = placed.places, here = selected && at[selected];
  const nearest = (test) => Object.entries(at).filter(([id]) => id !== selected).map(([id, p]) => [id, test(p)]).filter(([, d]) => d !== null).sort((a, b) => a[1] - b[1])[0]?.[0];
  const moves = {
    ArrowRight: (p) => (p.x > here.x + 20 ? p.x - here.x + 2 * Math.abs(p.y - here.y) : null), ArrowLeft: (p) => (p.x < here.x - 20 ? here.x - p.x + 2 * Math.abs(p.y - here.y) : null),
    ArrowDown: (p) => (p.y > here.y + 10 ? p.y - here.y + 2 * Math.abs(p.x - here.x) : null), ArrowUp: (p) => (p.y < here.y - 10 ? here.y - p.y + 2 * Math.abs(p.x - here.x) : null),
  };
  const linked = (key) => { const [from, to] = key === "ArrowRight" ? ["source", "target"] : ["target", "source"]; const next = model.links.filter((link) => link[from] === selected).map((link) => link[to]); return next.sort((a, b) => Math.abs(at[a].y - here.y) - Math.abs(at[b].y - here.y))[0]; };
  const box = model.boxes.find((one) => one.id === selected);
  if (moves[event.key]) {
    event.preventDefault();
    const next = here ? ((event.key === "ArrowRight" || event.key === "ArrowLeft") && linked(event.key)) || nearest(moves[event.key]) : model.boxes[0]?.id;
    if (next) select(next, false);
  } else if (event.key === "Enter" && selected) centre(selected);
  else if (event.key === "e" && box) (box.kind === "group" ? fold(box.group, false) : close(box.id, false));
  else if (event.key === "c" && box && box.kind !== "group") close(box.id, true);
  else if (event.key === "g" && box && box.kind !== "group") fold(box.group, true);
  else if (event.key === "p" && selected) go(withParams({ path: selected, selected: new URLSearchParams(location.search).get("mark") || selected, mark: null }));
  else if (event.key === "m" && selected) go(withParams({ mark: selected }), true);
  else if (event.key === "Escape") select(null);
  else if (event.key === "+" || event.key === "-") fit.current.by(event.key === "+" ? 1.3 : 1 / 1.3);
  else if (event.key === "0") fit.current.whole();
}

function Drawer({ box, fold, close: shut, closed, params, model }) {
  const close = html`<button class="icon" aria-label="Close" onClick=${() => go(withParams({ selected: null, path: null }))}>✕</button>`;
  if (box.kind === "group") {
    return html`<aside class="drawer" aria-label="Selected"><div class="row spread"><h1>${box.group}</h1>${close}</div><p>${box.members.length} folded here.</p><button onClick=${() => fold(box.group, false)}>Open the frame</button>
      <ul class="plain">${box.members.slice(0, 200).map((one) => html`<li>${one.type === "job" ? html`<${JobLink} of=${one} />` : html`<${TableLink} of=${one} />`}</li>`)}</ul></aside>`;
  }
  return html`<aside class="drawer" aria-label="Selected"><div class="row spread"><h1>${box.kind === "job" ? box.node.name : tableName(box.node)}</h1>${close}</div><p class="dim small">${box.node.namespace}</p>
    <p class="row"><a class="button" href=${linkOf(box.kind, box.node)}>open</a><a class="button" href=${address("/graph", { node: box.id })}>centre</a>${model.groups.get(groupOf(box.node))?.length > 1 && html`<button onClick=${() => fold(groupOf(box.node), true)}>fold its frame</button>`}<button aria-pressed=${closed.has(box.id)} onClick=${() => shut(box.id, !closed.has(box.id))}>${closed.has(box.id) ? "show" : "hide"} what follows</button></p>
    ${box.kind === "job" ? html`<${JobFacts} node=${box.node} />` : html`<${TableFacts} node=${box.node} params=${params} />`}
    <h2>Reads from and feeds</h2><ul class="plain">${model.links.filter((link) => link.source === box.id || link.target === box.id).map((link) => { const other = link.source === box.id ? link.target : link.source; const one = model.boxes.find((b) => b.id === other); return html`<li>${link.source === box.id ? "→" : "←"} <a href=${withParams({ selected: other })}>${one?.title}</a> <span class="dim small">${link.edges[0].rule === "allSources" ? "inputs × outputs" : `by ${link.edges[0].rule}`}${link.edges[0].lastSeen ? `, seen ${ago(link.edges[0].lastSeen)} in ${count(link.edges[0].runs, "run")}` : ""}</span></li>`; })}</ul></aside>`;
}

function JobFacts({ node }) {
  const detail = useData((signal) => get("/jobs/detail", { namespace: node.namespace, name: node.name }, signal), [node.id], false);
  return html`<p><${State} state=${node.state} /> ${node.startedAt && html`since <${Time} at=${node.startedAt} />`}${node.endedAt && html`, ended <${Time} at=${node.endedAt} />`}</p>
    <${Loaded} of=${detail}>${(job) => html`${job.group && html`<p>group <a href=${address("/group", { name: job.group })}>${job.group}</a></p>`}${job.facets.sql?.query && html`<pre>${job.facets.sql.query}</pre>`}`}<//>`;
}

function TableFacts({ node, params }) {
  const detail = useData((signal) => get("/datasets/detail", { namespace: node.namespace, name: node.name }, signal), [node.id], false);
  const snaps = useData((signal) => get("/datasets/snapshots", { namespace: node.namespace, name: node.name, limit: 1 }, signal), [node.id]);
  const [find, setFind] = useState("");
  const [shown, show] = useState(10);
  return html`<${Loaded} of=${snaps}>${({ items }) => (items.length ? html`<p>newest snapshot <${Id} id=${items[0].snapshotId} />${items[0].barrierId !== null && html` <span class="chip aligned">barrier ${items[0].barrierId}</span>`}<br /><span class="dim">committed <${Time} at=${items[0].committedAt} /></span></p>` : html`<p class="dim">No snapshot of it is known.</p>`)}<//>
    <${Loaded} of=${detail}>${(table) => { const fields = (table.facets.schema?.fields || []).filter((one) => one.name.toLowerCase().includes(find.toLowerCase())); return html`<h2>Columns</h2>${(table.facets.schema?.fields || []).length > 10 && html`<input type="search" placeholder="find a column" aria-label="Find a column" value=${find} onInput=${(e) => setFind(e.target.value)} />`}
      ${fields.length === 0 && html`<p class="dim">No columns are known.</p>`}
      <div class="row">${fields.slice(0, shown).map((one) => html`<button aria-pressed=${params.get("column") === one.name && params.get("of") === node.id} onClick=${() => go(withParams({ column: one.name, snapshot: null, of: node.id }))}>${one.name}</button>`)}</div>
      ${fields.length > shown && html`<button class="icon" onClick=${() => show(shown + 10)}>${fields.length - shown} more</button>`}
      <p class="small"><a href=${address("/impact", { namespace: node.namespace, name: node.name })}>what breaks if it goes?</a></p>`; }}<//>`;
}

// The moment that is shown; ticks are where the lineage changed: edges that began, runs that ended.
function TimeBar({ known, asOf, since, marks }) {
  const [now] = useState(() => Date.now());
  const moments = useMemo(() => [...new Set([...known.edges.map((one) => one.since), ...known.nodes.flatMap((one) => [one.startedAt, one.endedAt])].filter(Boolean).map(Date.parse))].sort((a, b) => a - b), [known]);
  const first = Math.min(moments[0] ?? now - 3600e3, now - 60e3) - 1000;
  const at = asOf || since ? Date.parse(asOf || since) : now;
  const [dragged, drag] = useState(null);
  const name = since ? "since" : "asOf";
  const set = (value) => { drag(null); go(withParams({ [name]: value >= now - 1000 ? null : new Date(value).toISOString() }), true); };
  const local = (value) => new Date(value - new Date(value).getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
  const added = [...marks.values()].filter((one) => one === "added").length, removed = marks.size - added;
  return html`<div class="timebar"><label class="small dim" for="moment">${since ? "changed since" : "as of"}</label>
    <div class="slider"><input id="moment" type="range" min=${first} max=${now} step="1000" value=${dragged ?? at} aria-valuetext=${absolute(new Date(dragged ?? at).toISOString())} onInput=${(e) => drag(Number(e.target.value))} onChange=${(e) => set(Number(e.target.value))} />
      <div class="ticks">${moments.slice(-300).map((one) => html`<i style=${{ left: `${(100 * (one - first)) / (now - first)}%` }}></i>`)}</div></div>
    <span class="small nowrap">${asOf || since || dragged ? absolute(new Date(dragged ?? at).toISOString()) : "now"}</span>
    <input type="datetime-local" aria-label="Choose the moment" value=${local(dragged ?? at)} onChange=${(e) => e.target.value && set(new Date(e.target.value).getTime())} />
    ${(asOf || since) && html`<button onClick=${() => go(withParams({ asOf: null, since: null }))}>now</button>`}
    <button aria-pressed=${Boolean(since)} onClick=${() => go(withParams(since ? { since: null } : { since: new Date(asOf ? Date.parse(asOf) : now - 86400e3).toISOString(), asOf: null }))}>what changed?</button>
    ${since && html`<span class="small">${count(added, "node")} came, ${removed} went</span>`}</div>`;
}
