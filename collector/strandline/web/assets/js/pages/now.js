// What a data engineer sees at nine in the morning; with an empty store, how to send the first
// event.
import { address, get, list } from "../api.js";
import { count, duration, number, withoutPackage } from "../format.js";
import { copy, Grid, html, Loaded, Said, Time, wordHead } from "../parts.js";
import { RunRows } from "./runs.js";
import { useData } from "../state.js";

const SIGNS = {
  failed: ["bad", "✕"],
  lost: ["warn", "?"],
  staleness: ["warn", "◷"],
  blocked: ["warn", "⊘"],
  skipped: ["aligned", "↷"],
  dead_letters: ["bad", "✉"],
};

// Runs: an application's are read with it, so that it is one row.
const RECENT = { read: 200, shown: 12 };

// The newest runs. An application that is older than all of these stands before the first of its
// runs, if that is one of the first rows.
async function recentRuns(signal) {
  const page = await list("/runs", {}, RECENT.read, signal);
  if (!page.more) return page;
  const ids = new Set(page.items.map((run) => run.runId));
  const above = new Map(
    page.items
      .filter((run) => run.parent && !ids.has(run.parent.runId))
      .map((run) => [run.parent.runId, run.parent]),
  );
  const found = await Promise.all(
    [...above.values()]
      .slice(0, RECENT.shown)
      .map(({ runId, job }) => get("/runs/detail", { runId, ...job }, signal).catch(() => null)),
  );
  const older = new Map(found.filter(Boolean).map((run) => [run.runId, run]));
  const withOlder = (run) => {
    const application = older.get(run.parent?.runId);
    older.delete(run.parent?.runId);
    return application ? [application, run] : [run];
  };
  return { ...page, items: page.items.flatMap(withOlder) };
}

export function Now() {
  const overview = useData((signal) => get("/overview", {}, signal), []);
  const recent = useData(recentRuns, []);
  return html`<${Loaded} of=${overview}>
    ${(now) =>
      now.newestEventAt
        ? html`<${Filled} now=${now} recent=${recent} />`
        : html`<${Empty} />`}<//>`;
}

// The worst thing, by name.
function sentence(now) {
  const late = now.groups
    .filter((one) => one.stalenessSeconds > 0)
    .sort((a, b) => b.stalenessSeconds - a.stalenessSeconds)[0];
  const [worst] = now.attention;
  if (late)
    return html`${late.stalest} is ${duration(late.stalenessSeconds)} behind, in group <a
      href=${address("/group", { name: late.name })}>${late.name}</a>.`;
  if (worst) return html`<${Said} text=${headOf(worst)} />.`;
  return "Nothing needs attention.";
}

const jobIn = (item) => item.text.split(" ")[1];
const headOf = ({ rule, reason, count: jobs, items: [first] }) => {
  if (rule !== "failed") return first.text;
  const said = withoutPackage(reason);
  return `${jobs === 1 ? `job ${jobIn(first)}` : count(jobs, "job")} failed: ${said}`;
};

function Filled({ now, recent }) {
  return html`<h1>Now</h1><p class="sentence">${sentence(now)}</p>
    ${
      silent(now) &&
      html`<p class="note">No event came for ${silent(now)}, so states are as of then. A recorded
        demo ends like this; otherwise look at the senders.</p>`
    }
    <div class="cards">
      <a class="card run" href=${address("/runs", { state: "running" })}><b>
      ${now.runningRuns}</b>running</a>
      <a class=${`card ${now.failedRuns ? "bad" : ""}`}
        href=${address("/runs", { state: "failed", since: "24h" })}><b>${now.failedRuns}</b>failed in 24 hours</a>
      <a class=${`card ${now.lostRuns ? "warn" : ""}`}
        href=${address("/runs", { state: "lost", since: "24h" })}><b>${now.lostRuns}</b>lost in 24 hours</a>
      <a class=${`card ${now.deadLetters ? "bad" : ""}`} href="/trouble"><b>
      ${now.deadLetters}</b>rejected in 24 hours</a>
    </div>
    <h2>Needs attention</h2>
    ${
      now.attention.length
        ? html`<div class="panel"><ul class="plain">
          ${now.attention.map((group) => html`<${Attention} group=${group} />`)}
          ${
            shownCount(now) < now.attentionCount &&
            html`<li class="dim">${shownCount(now)} of ${number(now.attentionCount)} shown</li>`
          }</ul></div>`
        : html`<div class="note">Nothing: no run failed or fell silent within 24 hours, and no version
          is blocked.</div>`
    }
    ${
      now.groups.length > 0 &&
      html`<h2>Consistency</h2>
        <${Grid} head=${GROUP_HEAD} rows=${now.groups.map(groupRow)} />`
    }
    <h2>Latest runs</h2>
    <${Loaded} of=${recent}>
    ${(page) => html`<${RunRows} page=${page} most=${RECENT.shown} />`}<//>
    <p class="small dim">Newest event: received <${Time} at=${now.newestEventAt} />, happened${" "}
    <${Time} at=${now.newestEventTime} />.</p>`;
}

const shownCount = (now) => now.attention.reduce((sum, group) => sum + group.count, 0);

const shown = (show) => ({ show, text: "" });
const GROUP_HEAD = [
  wordHead("group", "group"),
  "consistent at barrier",
  wordHead("barrier", "newest barrier"),
  "tables",
  wordHead("lag", "behind"),
];
const groupRow = (one) => [
  shown(html`<a href=${address("/group", { name: one.name })}>${one.name}</a>`),
  shown(html`<span class="mono">${one.strong ?? "none yet"}</span>`),
  shown(html`<span class="mono">${one.newest}</span>`),
  one.tables.length,
  shown(
    one.stalenessSeconds > 0
      ? html`<span class="chip warn">◷ ${duration(one.stalenessSeconds)}</span>`
      : html`<span class="chip ok">✓ up to date</span>`,
  ),
];
const SILENT_AFTER = 15 * 60; // seconds

// How long no event came while runs are open.
function silent(now) {
  const seconds = (Date.parse(now.asOf) - Date.parse(now.newestEventAt)) / 1000;
  return now.runningRuns > 0 && seconds > SILENT_AFTER ? duration(seconds) : null;
}

// One trouble, or the jobs that failed for one reason, folded.
function Attention({ group }) {
  const [one] = group.items;
  if (group.count === 1)
    return html`<li class="attention"><${Sign} rule=${group.rule} />
      <span><${Said} text=${headOf(group)} /></span><${WayOut} one=${one} /></li>`;
  return html`<li class="attention"><${Sign} rule=${group.rule} /><details>
    <summary><${Said} text=${headOf(group)} /></summary>
    ${group.items.map(
      (item) =>
        html`<p class="row"><span><${Said} text=${item.text} /></span><${WayOut} one=${item} /></p>`,
    )}
    ${
      group.count > group.items.length &&
      html`<p class="dim">${group.items.length} of ${number(group.count)} are listed; <a
        href=${address("/runs", { state: "failed", since: "24h" })}>all failed runs</a></p>`
    }</details><span></span></li>`;
}

function Sign({ rule }) {
  const [kind, sign] = SIGNS[rule] || ["", "!"];
  return html`<span class=${`chip ${kind}`} title=${rule}>${sign}</span>`;
}

function WayOut({ one }) {
  if (!one.node) return html`<a href="/trouble">look</a>`;
  const job = one.node.startsWith("job:");
  return html`<span class="row">
    <a class="button" href=${address(job ? "/job" : "/table", { node: one.node })}>
    ${job ? "job" : "table"}</a>
    <a class="button" href=${address("/graph", { node: one.node })}>graph</a>
    ${job && html`<a class="button" href=${address("/impact", { node: one.node })}>downstream</a>`}
    </span>`;
}

function Empty() {
  const conf = [
    "spark.strandline.enabled        true",
    `spark.openlineage.transport.url ${location.origin}`,
  ].join("\n");
  const body = {
    eventType: "COMPLETE",
    eventTime: new Date().toISOString(),
    producer: "curl",
    schemaURL: "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    run: { runId: "00000000-0000-4000-8000-000000000001" },
    job: { namespace: "me", name: "hello" },
    inputs: [{ namespace: "file", name: "/in" }],
    outputs: [{ namespace: "file", name: "/out" }],
  };
  const url = `${location.origin}/api/v1/lineage`;
  const header = "-H 'Content-Type: application/json'";
  const event = `curl ${url} ${header} -d '${JSON.stringify(body)}'`;
  return html`<h1>No events yet</h1>
    <p class="sentence">This page notices the first event by itself. Two lines
    in <code>spark-defaults.conf</code> send it, with <code>strandline-spark</code> installed beside
    PySpark:</p>
    <pre>${conf}</pre><p><button onClick=${() => copy(conf)}>Copy the conf</button></p>
    <p>Or any OpenLineage producer: Airflow, dbt, Flink, the OpenLineage Spark listener. What a
    Marquez holds comes with <code>strandline import --from marquez URL</code>. Or by hand:</p><pre>${event}</pre><p>
    <button onClick=${() => copy(event)}>Copy the command</button></p>`;
}
