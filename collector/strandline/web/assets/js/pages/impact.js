// What breaks if a table or one of its columns goes: everything downstream, as a table.
import { address, get } from "../api.js";
import { count, nodeId, tableName } from "../format.js";
import { Grid, html, JobLink, Loaded, State, TableLink, Time } from "../parts.js";
import { go, useData, withParams } from "../state.js";

const DEPENDS = {
  direct: "its value goes in",
  indirect: "a filter, a join or a sort needs it",
  opaque: "perhaps: no column lineage says",
};

export function Impact({ params }) {
  const one = { namespace: params.get("namespace") || "", name: params.get("name") || "" },
    column = params.get("column");
  const node = nodeId("dataset", one);
  const detail = useData((signal) => get("/datasets/detail", one, signal), [node], false);
  const impact = useData(
    (signal) => get("/impact", { node, column, limit: 5000 }, signal),
    [node, column],
  );
  return html`<${Loaded} of=${detail}>${(
    table,
  ) => html`<h1>Impact of dropping ${tableName(table)}${column ? `.${column}` : ""}</h1>
    <p class="row"><label>column <select value=${column || ""} onChange=${(e) => go(withParams({ column: e.target.value }))}><option value="">the whole table</option>${(table.facets.schema?.fields || []).map((f) => html`<option value=${f.name}>${f.name}</option>`)}</select></label><a class="button" href=${address("/graph", { node, direction: "downstream", column, of: column ? node : null })}>graph</a></p>
    <${Loaded} of=${impact}>${(found) => (column ? html`<${OfColumn} found=${found} />` : html`<${OfTable} found=${found} />`)}<//>`}<//>`;
}

const more = (found) => (found.complete ? "" : `, and more: cut by ${found.truncatedBy}`);
const what = (one) => ({
  show: one.type === "job" ? html`<${JobLink} of=${one} />` : html`<${TableLink} of=${one} />`,
  text: one.type === "job" ? one.name : tableName(one),
});
const state = (one) =>
  one.lastRunState
    ? { show: html`<${State} state=${one.lastRunState} />`, text: one.lastRunState }
    : "";
const used = (one) => {
  const at = one.lastRunAt || one.lastReadAt;
  return { show: html`<${Time} at=${at} />`, text: at || "" };
};
const people = (one) => [
  one.owners.join(", ") || { show: html`<span class="dim">–</span>`, text: "" },
  state(one),
  used(one),
];
const PEOPLE = ["owners", "state", "last run or read"];

function OfTable({ found }) {
  const { datasets, jobs } = found.affected;
  return html`<p class="sentence">${datasets + jobs ? `${count(datasets, "table")} and ${count(jobs, "job")} depend on it${more(found)}.` : "Nothing is known that depends on it."}</p>
    <${Grid} name="impact" head=${["what", "kind", "steps away", ...PEOPLE]} rows=${found.items.filter((one) => one.type !== "column").map((one) => [what(one), one.type === "job" ? "job" : "table", one.distance, ...people(one)])} />`;
}

const tableOf = (one) => JSON.stringify([one.namespace, one.name]);
const GONE =
  "An earlier run made it, and the newest schema of its table lacks it: it was dropped or renamed, or that schema told only a part";
const inSchema = ({ inSchema: is }) =>
  is === false
    ? { show: html`<span class="chip warn" title=${GONE}>✕ no longer</span>`, text: "no longer" }
    : is
      ? "yes"
      : "";

function OfColumn({ found }) {
  const columns = found.items.filter((one) => one.type === "column"),
    by = new Set(columns.map(tableOf));
  const shown = found.items.filter((one) => one.type !== "dataset" || !by.has(tableOf(one))); // a table of which no column is known stands for itself
  const { datasets, jobs } = found.affected,
    gone = columns.filter((one) => one.inSchema === false).length;
  return html`<p class="sentence">${shown.length ? `${count(columns.length, "column")} in ${count(datasets, "table")} and ${count(jobs, "job")} depend on it${more(found)}.${gone ? ` ${gone} of these columns ${gone === 1 ? "is" : "are"} no longer in the newest schema of ${gone === 1 ? "its table" : "their tables"}.` : ""}` : "Nothing is known that depends on it."}</p>
    <${Grid} name="impact" head=${["what", "column", "in the newest schema", "how", "steps away", ...PEOPLE]} rows=${shown.map((one) => [what(one), one.type === "job" ? "" : one.column || "(whole table)", inSchema(one), DEPENDS[one.dependency] || "as a whole", one.distance, ...people(one)])} />`;
}
