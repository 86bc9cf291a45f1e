// What breaks if a table or one of its columns goes: everything downstream, as a table.
import { address, get } from "../api.js";
import { count, nodeId, tableName } from "../format.js";
import { Grid, html, JobLink, Loaded, State, TableLink, Time } from "../parts.js";
import { go, useData, withParams } from "../state.js";

export function Impact({ params }) {
  const one = { namespace: params.get("namespace") || "", name: params.get("name") || "" }, column = params.get("column");
  const node = nodeId("dataset", one);
  const detail = useData((signal) => get("/datasets/detail", one, signal), [node], false);
  const tables = useData((signal) => get("/lineage", { node, direction: "downstream", limit: 5000 }, signal), [node]);
  const columns = useData((signal) => (column ? get("/lineage", { node, column, granularity: "column", direction: "downstream", limit: 5000 }, signal) : null), [node, column]);
  return html`<${Loaded} of=${detail}>${(table) => html`<h1>What breaks if ${tableName(table)}${column ? `.${column}` : ""} goes?</h1>
    <p class="row"><label>column <select value=${column || ""} onChange=${(e) => go(withParams({ column: e.target.value }))}><option value="">the whole table</option>${(table.facets.schema?.fields || []).map((f) => html`<option value=${f.name}>${f.name}</option>`)}</select></label><a class="button" href=${address("/graph", { node, direction: "downstream", column, of: column ? node : null })}>graph</a></p>
    ${column ? html`<${Loaded} of=${columns}>${(graph) => html`<${OfColumn} graph=${graph} />`}<//>` : html`<${Loaded} of=${tables}>${(graph) => html`<${OfTable} graph=${graph} />`}<//>`}`}<//>`;
}

function OfTable({ graph }) {
  const below = graph.nodes.filter((one) => one.distance > 0), jobs = below.filter((one) => one.type === "job");
  return html`<p class="sentence">${below.length ? `${count(below.length - jobs.length, "table")} and ${count(jobs.length, "job")} depend on it${graph.complete ? "" : `, and more: cut by ${graph.truncatedBy}`}.` : "Nothing is known that depends on it."}</p>
    <${Grid} name="impact" head=${["what", "kind", "steps away", "state", "last run"]} rows=${below.map((one) => [{ show: one.type === "job" ? html`<${JobLink} of=${one} />` : html`<${TableLink} of=${one} />`, text: tableName(one) }, one.type === "job" ? "job" : "table", one.distance, one.state ? { show: html`<${State} state=${one.state} />`, text: one.state } : "", { show: html`<${Time} at=${one.endedAt || one.startedAt} />`, text: one.endedAt || one.startedAt || "" }])} />`;
}

function OfColumn({ graph }) {
  const below = graph.nodes.filter((one) => one.distance > 0), by = new Map(graph.nodes.map((one) => [one.id, one]));
  const how = (one) => [...new Set(graph.edges.filter((edge) => edge.target === one.id && by.has(edge.source)).flatMap((edge) => (edge.transformations || [edge]).map((t) => [t.type, t.subtype].filter(Boolean).join(" "))))].join(", ");
  return html`<p class="sentence">${below.length ? `${count(below.length, "column")} in ${count(new Set(below.map((one) => one.namespace + one.name)).size, "table")} depend on it${graph.complete ? "" : `, and more: cut by ${graph.truncatedBy}`}.` : "No column is known that depends on it."}</p>
    <${Grid} name="impact" head=${["table", "column", "how", "steps away"]} rows=${below.map((one) => [{ show: html`<${TableLink} of=${one} />`, text: tableName(one) }, one.column || "(whole table)", how(one), one.distance])} />`;
}
