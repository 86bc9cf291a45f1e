// Everything downstream of a table, of one of its columns or of a job, as a table.
import { address, get } from "../api.js";
import { count, nodeId, number, tableName } from "../format.js";
import { Grid, html, JobLink, Loaded, None, State, TableLink, Time } from "../parts.js";
import { go, useData, useTitle, withParams } from "../state.js";

const DEPENDS = {
  direct: "its value goes in",
  indirect: "a filter, a join or a sort needs it",
  opaque: "perhaps: no column lineage says",
};

export function Impact({ params }) {
  const node = params.get("node");
  return node?.startsWith("job:")
    ? html`<${OfJob} node=${node} />`
    : html`<${OfDataset} params=${params} />`;
}

function OfJob({ node }) {
  const impact = useData((signal) => get("/impact", { node, limit: 5000 }, signal), [node]);
  useTitle(impact.data && `Downstream of ${impact.data.node.name}`);
  return html`<${Loaded} of=${impact} title="Downstream">${(
    found,
  ) => html`<h1>Downstream of <${JobLink} of=${found.node} /></h1>
    <p class="row"><a class="button" href=${address("/graph", {
      node,
      direction: "downstream",
      depth: FAR,
    })}>graph</a></p>
    <${OfTable} found=${found} />`}<//>`;
}

const FAR = 5; // jobs: more than a graph shows by itself

function OfDataset({ params }) {
  const one = { namespace: params.get("namespace") || "", name: params.get("name") || "" },
    column = params.get("column");
  const node = nodeId("dataset", one);
  const detail = useData((signal) => get("/datasets/detail", one, signal), [node], false);
  const impact = useData(
    (signal) => get("/impact", { node, column, limit: 5000 }, signal),
    [node, column],
  );
  useTitle(detail.data && `Impact of dropping ${tableName(detail.data)}`);
  return html`<${Loaded} of=${detail} title="Impact">${(
    table,
  ) => html`<h1>Impact of dropping ${tableName(table)}${column ? `.${column}` : ""}</h1>
    <p class="row">
    <label>column <select value=${column || ""} onChange=${(e) =>
      go(
        withParams({ column: e.target.value }),
      )}><option value="">the whole table</option>${columnsOf(table, column).map(
      (one) => html`<option value=${one}>${one}</option>`,
    )}</select></label><a class="button" href=${address("/graph", {
      node,
      direction: "downstream",
      column,
      of: column ? node : null,
    })}>graph</a></p>
    <${Loaded} of=${impact}>
    ${(found) =>
      column
        ? html`<${OfColumn} found=${found} />`
        : html`<${OfTable} found=${found} />`}<//>`}<//>`;
}

// The columns to choose from; the chosen one may be in no schema.
function columnsOf(table, chosen) {
  const names = (table.facets.schema?.fields || []).map((field) => field.name);
  return chosen && !names.includes(chosen) ? [...names, chosen] : names;
}

const atLeast = (found) => (found.complete ? "" : "At least ");
const more = (found) => (found.complete ? "" : "; one answer lists no more");
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
  one.owners.join(", ") || { show: html`<${None} />`, text: "" },
  state(one),
  used(one),
];
const PEOPLE = ["owners", "state", "last run or read"];

function OfTable({ found }) {
  const { datasets, jobs } = found.affected;
  return html`<p class="sentence">
    ${
      datasets + jobs
        ? `${atLeast(found)}${count(datasets, "table")} and ${count(jobs, "job")} depend on it${more(found)}.`
        : "Nothing is known that depends on it."
    }</p>
    <${Rows} items=${found.items} head=${[
      "what",
      "kind",
      "steps away",
      ...PEOPLE,
    ]} rows=${found.items
      .filter((one) => one.type !== "column")
      .map((one) => [
        what(one),
        one.type === "job" ? "job" : "table",
        one.distance,
        ...people(one),
      ])} />`;
}

const MANY = 50;
const SHOWN_AT_ONCE = 100; // rows

// The rows, or above MANY first the jobs with their owners and what each makes of it.
function Rows({ items, head, rows }) {
  const all = html`<${Grid} name="impact" head=${head} rows=${rows} most=${SHOWN_AT_ONCE} />`;
  if (rows.length <= MANY) return all;
  return html`<h2>By job and owner</h2>
    <${Grid} name="impact-jobs" head=${JOB_HEAD} rows=${byJob(items).map(jobRow)}
      most=${SHOWN_AT_ONCE} />
    <details><summary>All ${number(rows.length)} rows</summary>${all}</details>`;
}

const JOB_HEAD = ["job", "owners", "its tables", "its columns", "steps away", "state", "last run"];
const jobRow = ({ job, owners, tables, columns }) => [
  what(job),
  [...owners].sort().join(", ") || { show: html`<${None} />`, text: "" },
  tables.size,
  columns,
  job.distance,
  state(job),
  used(job),
];

// The jobs that depend on it, each with the tables and columns that it makes of it and all their
// owners; those of one owner stand together.
function byJob(items) {
  const groups = new Map();
  for (const job of items.filter((one) => one.type === "job"))
    groups.set(job.id, { job, owners: new Set(job.owners), tables: new Set(), columns: 0 });
  for (const one of items.filter((item) => item.type !== "job")) {
    for (const group of one.jobs.map((id) => groups.get(id)).filter(Boolean)) {
      group.tables.add(tableOf(one));
      group.columns += one.type === "column" ? 1 : 0;
      one.owners.forEach((owner) => group.owners.add(owner));
    }
  }
  const key = ({ owners }) => [...owners].sort().join() || "\uffff"; // without an owner: last
  return [...groups.values()].sort(
    (a, b) => key(a).localeCompare(key(b)) || a.job.distance - b.job.distance,
  );
}

const tableOf = (one) => JSON.stringify([one.namespace, one.name]);
const GONE =
  "An earlier run made it, and the newest schema of its table lacks it: it was dropped or " +
  "renamed, or that schema told only a part";
function goneOf(number) {
  if (!number) return "";
  return number === 1
    ? "1 of these columns is no longer in the newest schema of its table."
    : `${number} of these columns are no longer in the newest schema of their tables.`;
}
const inSchema = ({ inSchema: is }) =>
  is === false
    ? { show: html`<span class="chip warn" title=${GONE}>✕ no longer</span>`, text: "no longer" }
    : is
      ? "yes"
      : "";

function OfColumn({ found }) {
  const columns = found.items.filter((one) => one.type === "column"),
    by = new Set(columns.map(tableOf));
  // a table of which no column is known stands for itself
  const shown = found.items.filter((one) => one.type !== "dataset" || !by.has(tableOf(one)));
  const { datasets, jobs } = found.affected,
    gone = columns.filter((one) => one.inSchema === false).length;
  return html`<p class="sentence">
    ${
      shown.length
        ? `${atLeast(found)}${count(columns.length, "column")} in ${count(datasets, "table")}
          and ${count(jobs, "job")} depend on it${more(found)}. ${goneOf(gone)}`
        : "Nothing is known that depends on it."
    }</p>
    <${Rows} items=${found.items} head=${[
      "what",
      "column",
      "in the newest schema",
      "how",
      "steps away",
      ...PEOPLE,
    ]} rows=${shown.map((one) => [
      what(one),
      one.type === "job" ? "" : one.column || "(whole table)",
      inSchema(one),
      DEPENDS[one.dependency] || "as a whole",
      one.distance,
      ...people(one),
    ])} />`;
}
