// Search, events as received, and what was rejected.
import { useEffect, useState } from "preact/hooks";
import { get, list } from "../api.js";
import { count, tableName } from "../format.js";
import { Grid, html, JobLink, linkOf, Loaded, Name, State, Time } from "../parts.js";
import { go, useData } from "../state.js";

const EMPTY = html`Nothing has this in its name, a tag, a column or its SQL. Ids of runs, snapshots
  and Spark applications are found from their sixth character on.`;
// Whether a text is the whole id of what was found: then it is what the person meant.
export const isWholeId = (one, text) =>
  (one.matched === "run" && one.name === text) ||
  (one.matched === "application" && one.label === text) ||
  (one.matched === "snapshot" && one.text === text);

// When a table was written last, and by which job.
function lastWrite({ latestWrite }) {
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
  const [only, ...others] = found.data?.items || [];
  const leads = only && !others.length && isWholeId(only, q);
  useEffect(() => {
    if (leads) go(linkOf(only.type, only), true);
  }, [leads]);
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
      lastWrite(one),
    ];
  };
  return html`<h1>Search</h1>
    <${Loaded} of=${found}>${({ items, more }) => html`<p class="dim">
        ${more ? "at least " : ""}${count(items.length, "result")} for “${q}”</p>
      <${Grid}
        name="search"
        empty=${EMPTY}
        head=${["name", "kind", "catalog", "namespace", "last write"]}
        rows=${items.map(row)}
      />`}<//>`;
}

export function Events() {
  const found = useData((signal) => get("/events", { limit: 50 }, signal), []);
  const [open, setOpen] = useState(null);
  return html`<h1>Events as received</h1>
    <p class="dim">The newest 50; secrets are taken out before anything is stored. Received is when
    the event came here, happened is the time that its sender states.</p>
    <${Loaded} of=${found}>${({ items }) => html`
    <${Grid} name="events" empty="No events yet. Now says how to send the first one." head=${[
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
          open === one.hash && html`<pre>${one.problem || JSON.stringify(one.event, null, 1)}</pre>`
        }`,
        text: one.hash,
      },
    ])} />`}<//>`;
}

export function Trouble() {
  const dead = useData((signal) => list("/dead-letters", {}, 200, signal), []);
  return html`<h1>Rejected events</h1>
    <p class="dim">Records that could not be read as events. After a fix, <code>strandline
    replay --dead-letters</code> reads them again.</p><${Loaded} of=${dead}>${({ items, more }) => {
      const reasons = new Map();
      items.forEach((one) => {
        const key = one.reason.replace(/\(at .*\)$/, "");
        reasons.set(key, (reasons.get(key) || 0) + 1);
      });
      return html`
    ${
      items.length > 0 &&
      html`<h2>By reason</h2>
    <${Grid} name="reasons" head=${["reason", "records"]}
      rows=${[...reasons].sort((a, b) => b[1] - a[1])} /><h2>Newest</h2>`
    }
    <${Grid} name="dead-letters" empty="Nothing was rejected."
      head=${["received", "reason", "place", "body"]} rows=${items.map((one) => [
        { show: html`<${Time} at=${one.receivedAt} />`, text: one.receivedAt },
        one.reason,
        one.topic ? `${one.topic}[${one.partition}]@${one.offset}` : "",
        { show: html`<details><summary>show</summary><pre>${one.body}</pre></details>`, text: "" },
      ])} />${more && html`<p class="dim">the newest 200 are shown</p>`}`;
    }}<//>`;
}
