// Search, events as received, and what was rejected.
import { useEffect, useState } from "preact/hooks";
import { get, list } from "../api.js";
import { count, number, tableName } from "../format.js";
import { Grid, html, JobLink, linkOf, Loaded, Name, NoneYet, State, Time, Word } from "../parts.js";
import { go, useData } from "../state.js";

const ASK = "Type into the field above: a table, a column, a job, or an id.";
const EMPTY = html`Nothing has this in its name, a tag, a column or its SQL. Ids of runs, snapshots
  and Spark applications are found from their sixth character on.`;
// Whether a text is the whole id or the whole name of what was found.
const isWhole = (one, text) =>
  (one.matched === "run" && one.name === text) ||
  (one.matched === "application" && one.label === text) ||
  (one.matched === "snapshot" && one.text === text) ||
  (one.type !== "run" && [one.name, one.id, tableName(one)].includes(text));
// What a person means who typed the whole of it: it alone, unless a table is called so, too.
function meant(items, text) {
  const [only, ...others] = items.filter((one) => isWhole(one, text));
  const isAmbiguous = others.length || items.some((one) => one !== only && one.table === text);
  return isAmbiguous ? null : only;
}

// What has this name itself comes before what has it as a part.
const byName = (items, text) => {
  const isNamed = (one) => isWhole(one, text) || one.table === text;
  return [...items.filter(isNamed), ...items.filter((one) => !isNamed(one))];
};

// When a table was written last, and by which job; how a run is, and when it started.
function latest({ state, startedAt, latestWrite }) {
  if (state)
    return {
      show: html`<${State} state=${state} /> <span class="dim">started</span>${" "}
        <${Time} at=${startedAt} />`,
      text: startedAt,
    };
  if (!latestWrite) return "";
  const at = latestWrite.endedAt || latestWrite.startedAt;
  return {
    show: html`${latestWrite.running && "since "}<${Time} at=${at} />
      <div class="small dim">by <${JobLink} of=${latestWrite.job} /></div>`,
    text: at,
  };
}

export function Search({ params }) {
  const q = (params.get("q") || "").trim();
  const found = useData((signal) => (q ? list("/search", { q }, 200, signal) : { items: [] }), [q]);
  const target = found.keys === JSON.stringify([q]) ? meant(found.data?.items || [], q) : null;
  const leadsTo = target && linkOf(target.type, target);
  useEffect(() => {
    if (leadsTo) go(leadsTo, true);
  }, [leadsTo]);
  const row = (one) => {
    const where = one.type === "run" ? "job" : one.matched;
    return [
      {
        show: html`<a href=${linkOf(one.type, one)}>${tableName(one)}</a>
          ${
            one.type === "dataset" &&
            html`<div class="small dim mono"><${Name} text=${one.name} /></div>`
          }
          ${
            one.matched !== "name" &&
            one.text &&
            html`<div class="small dim">${where}: <span class="mono">${one.text}</span></div>`
          }`,
        text: one.name,
      },
      one.type === "dataset" ? "table" : one.type,
      one.catalog || "",
      { show: html`<${Name} text=${one.namespace} />`, text: one.namespace },
      latest(one),
    ];
  };
  return html`<h1>Search</h1>
    <${Loaded} of=${found}>${({ items, more }) => html`<p class="dim">
        ${q ? `${more ? "at least " : ""}${count(items.length, "result")} for “${q}”` : ASK}</p>
      ${
        q &&
        html`<${Grid}
        name="search"
        empty=${EMPTY}
        head=${["name", "kind", "catalog", "namespace", "latest"]}
        rows=${byName(items, q).map(row)}
      />`
      }`}<//>`;
}

export function Events() {
  const found = useData((signal) => get("/events", { limit: 50 }, signal), []);
  const [open, setOpen] = useState(null);
  return html`<h1>Events as received</h1>
    <p class="dim">The newest 50; secrets are taken out before anything is stored. Received: when
    the collector got the event. Happened: the event's own time.</p>
    <${Loaded} of=${found}>${({ items }) => html`
    <${Grid} name="events" empty=${html`<${NoneYet} of="events" />`} head=${[
      "received",
      "happened",
      "type",
      "job",
      "inputs",
      "outputs",
      "event",
    ]} rows=${items.map((one) => [
      { show: html`<${Time} at=${one.receivedAt} />`, text: one.receivedAt },
      { show: html`<${Time} at=${one.eventTime} />`, text: one.eventTime },
      one.event.eventType
        ? { show: html`<${State} state=${one.event.eventType} />`, text: one.event.eventType }
        : one.event.dataset
          ? "dataset"
          : "job",
      one.event.job
        ? { show: html`<${JobLink} of=${one.event.job} />`, text: one.event.job.name }
        : one.event.dataset?.name || "",
      (one.event.inputs || []).length,
      (one.event.outputs || []).length,
      {
        show: html`<button class="icon" aria-expanded=${open === one.hash} onClick=${() =>
          setOpen(open === one.hash ? null : one.hash)}>JSON</button>${
          open === one.hash &&
          html`<pre tabindex="0">${one.problem || JSON.stringify(one.event, null, 1)}</pre>`
        }`,
        text: one.hash,
      },
    ])} />`}<//>`;
}

const KINDS = { rejected: "refused over HTTP", deadLetters: "dead letter", unread: "unread" };

export function Trouble() {
  const found = useData((signal) => get("/rejected", { limit: 200 }, signal), []);
  const row = (one) => [
    one.reason,
    one.producer || "",
    KINDS[one.list] || one.list,
    number(one.count),
    { show: html`<${Time} at=${one.newestAt} />`, text: one.newestAt },
    one.place || "",
    {
      show: html`<details><summary>show</summary><pre tabindex="0">${one.body}</pre></details>`,
      text: "",
    },
  ];
  return html`<h1>Rejected events</h1>
    <p class="dim">What could not be read as an event, by reason and producer. A <${Word}
    of="rejected">rejected<//> event was answered with its reason. After a fix,
    ${" "}<code>strandline replay --dead-letters</code> reads dead letters again.</p>
    <${Loaded} of=${found}>${({ items, complete }) => html`<${Grid}
        name="rejected"
        empty="Nothing was rejected."
        head=${["reason", "producer", "kind", "records", "newest", "place", "example"]}
        rows=${items.map(row)}
      />${!complete && html`<p class="dim">Only the newest are counted.</p>`}`}<//>`;
}
