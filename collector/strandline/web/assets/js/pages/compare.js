// Why do these tables disagree? What each lacks, the late job, and SQL with snapshots that agree.
import { useState } from "preact/hooks";
import { get, list, post } from "../api.js";
import { duration, tableName } from "../format.js";
import { Grid, html, Id, JobLink, Loaded, Problem, Sql, TableLink, Time } from "../parts.js";
import { go, useData, withParams } from "../state.js";

const WAYS = [["strong", "strong: every table of the domain agrees"], ["weak", "weak: these tables agree"], ["cut", "a cut by data lineage, without barriers"]];

export function Compare({ params }) {
  const ids = (params.get("tables") || "").split("~").filter(Boolean);
  const tables = useData((signal) => Promise.all(ids.map((node) => get("/lineage", { node, depth: 0 }, signal).then((found) => found.nodes.find((one) => one.distance === 0)))), [params.get("tables")]);
  const choose = (next) => go(withParams({ tables: next.join("~") || null }));
  return html`<h1>Why do these tables disagree?</h1><${Chooser} ids=${ids} choose=${choose} />
    ${ids.length > 0 && html`<${Loaded} of=${tables}>${(found) => html`<${Answer} tables=${found} ids=${ids} choose=${choose} way=${params.get("way") || "strong"} />`}<//>`}`;
}

function Chooser({ ids, choose }) {
  const [text, setText] = useState("");
  const found = useData((signal) => (text.length > 1 ? get("/search", { q: text, limit: 12 }, signal).then((page) => page.items.filter((one) => one.type === "dataset")) : list("/datasets", {}, 12, signal).then((page) => page.items)), [text], false);
  return html`<div class="row"><input type="search" aria-label="Find a table to compare" placeholder="find a table" value=${text} onInput=${(e) => setText(e.target.value)} />${(found.data || []).filter((one) => !ids.includes(one.id)).map((one) => html`<button onClick=${() => choose([...ids, one.id])}>+ ${tableName(one)}</button>`)}</div>`;
}

function Answer({ tables, ids, choose, way }) {
  const body = { tables: tables.map(({ namespace, name }) => ({ namespace, name })) };
  const key = ids.join("~");
  const newest = useData((signal) => Promise.all(tables.map((one) => get("/datasets/snapshots", { namespace: one.namespace, name: one.name, limit: 1 }, signal).then((page) => page.items[0] || null))), [key]);
  const answers = useData((signal) => Promise.all(WAYS.map(([one]) => post(one === "cut" ? "/cuts" : "/versions", one === "cut" ? body : { ...body, consistency: one }, signal).catch((error) => ({ error })))), [key]);
  const chosen = Math.max(0, WAYS.findIndex(([one]) => one === way));
  const of = (answer, one) => answer?.tables?.find((t) => t.namespace === one.namespace && t.name === one.name);
  const show = (version) => (version ? { show: html`<${Id} id=${version.snapshotId} />${version.barrier !== null && version.barrier !== undefined ? html` <span class="chip aligned">${version.barrier}</span>` : ""}`, text: version.snapshotId } : "–");
  return html`<${Loaded} of=${newest}>${(snaps) => html`<${Loaded} of=${answers}>${(found) => {
    const answer = found[chosen], latest = snaps.map((one) => one?.barrierId ?? null);
    const sql = answer.tables && tables.map((one) => `SELECT * FROM ${tableName(one)} VERSION AS OF ${of(answer, one).snapshotId};`).join("\n");
    return html`<p class="sentence">${sentence(tables, latest, found)}</p>
      <${Grid} name="compare" head=${["table", "newest", "committed", "strong", "weak", "cut", ""]} rows=${tables.map((one, i) => [{ show: html`<${TableLink} of=${one} />`, text: tableName(one) }, snaps[i] ? show({ snapshotId: snaps[i].snapshotId, barrier: snaps[i].barrierId }) : "no snapshot", { show: html`<${Time} at=${snaps[i]?.committedAt} />`, text: snaps[i]?.committedAt || "" }, ...found.map((a) => show(of(a, one))), { show: html`<button class="icon" aria-label=${`Remove ${tableName(one)}`} onClick=${() => choose(ids.filter((id) => id !== ids[i]))}>✕</button>`, text: "" }])} />
      ${found[0].heldBy?.map((one) => html`<div class="note">Held back: ${one.reason}${one.job && html` · <${JobLink} of=${one.job} />`}</div>`)}
      <h2>SQL that agrees</h2><p class="row" role="group" aria-label="Which snapshots">${WAYS.map(([one, about], i) => html`<button aria-pressed=${i === chosen} disabled=${Boolean(found[i].error)} title=${found[i].error?.message || about} onClick=${() => go(withParams({ way: one }), true)}>${one}</button>`)}<span class="dim small">${WAYS[chosen][1]}${answer.tables?.[0]?.lagSeconds ? `; ${duration(Math.max(...answer.tables.map((t) => t.lagSeconds || 0)))} behind` : ""}</span></p>
      ${answer.error ? html`<${Problem} error=${answer.error} />` : html`<${Sql} text=${sql} />`}`; }}<//>`}<//>`;
}

function sentence(tables, latest, [strong]) {
  if (tables.length < 2) return "Choose a second table.";
  const known = latest.filter((one) => one !== null);
  if (known.length < latest.length) return strong.error ? strong.error.message : "Not all of the newest snapshots carry a barrier, so reading them together may mix moments.";
  if (new Set(known).size === 1) return `Their newest snapshots agree: all stand at barrier ${known[0]}.`;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const late = tables.filter((_, i) => latest[i] < high).map(tableName).join(", ");
  return `Their newest snapshots disagree: barriers ${low} to ${high}. ${late} ${late.includes(",") ? "lack" : "lacks"} what the others show.`;
}
