// Runs: filters that are sentences; one run with its children as a Gantt, its error, what it read
// and wrote.
import { address, get, list } from "../api.js";
import { ago, count, duration, nodeId, number, tableName, withoutPackage } from "../format.js";
import {
  Below,
  Facets,
  Grid,
  graphOf,
  html,
  Id,
  JobLink,
  Loaded,
  Name,
  nameBelow,
  NodeLink,
  NoMatch,
  NoneYet,
  State,
  TableLink,
  Time,
  useTree,
} from "../parts.js";
import { go, useData, useTitle, withParams } from "../state.js";

const SINCE = [
  ["", "at any time"],
  ["1h", "in the last hour"],
  ["24h", "in the last 24 hours"],
  ["7d", "in the last 7 days"],
];
const KINDS = [
  ["", "all"],
  ["running", "running"],
  ["failed", "failed"],
  ["lost", "lost"],
  ["complete", "complete"],
  ["stopped", "stopped"],
];
const OF = {
  running: ["START", "RUNNING"],
  failed: ["FAIL"],
  lost: ["LOST"],
  complete: ["COMPLETE"],
  stopped: ["ABORT"],
};

export function Runs({ params }) {
  const state = params.get("state") || "",
    since = params.get("since") || "",
    namespace = params.get("namespace");
  const found = useData(
    (signal) =>
      list("/runs", { namespace, since, state: (OF[state] || []).join(",") }, 500, signal),
    [namespace, since, state],
  );
  return html`<h1>Runs</h1>
    <p class="sentence row">Runs that are <select aria-label="State" value=${state} onChange=${(
      e,
    ) => go(withParams({ state: e.target.value }))}>${KINDS.map(
      ([value, label]) => html`<option value=${value}>${label}</option>`,
    )}</select>
    <select aria-label="Since" value=${since} onChange=${(e) =>
      go(withParams({ since: e.target.value }))}>${SINCE.map(
      ([value, label]) => html`<option value=${value}>${label}</option>`,
    )}</select></p>
    <${Loaded} of=${found}>${({ items, more }) => html`<p class="dim">
    ${more ? "Newest " : ""}${runCount(items)}${more ? "; more match" : ""}</p>
    <${RunRows} page=${{ items, more }} empty=${
      (state || since || namespace) && html`<${NoMatch} of="runs" all="/runs" />`
    } />`}<//>`;
}

// As the first screen counts: a run below another of these is no second one.
function runCount(items) {
  const ids = new Set(items.map((run) => run.runId));
  const below = items.filter((run) => ids.has(run.parent?.runId)).length;
  const top = items.length - below;
  return `${count(top, "run")}${below ? ` and ${number(below)} below ${top === 1 ? "it" : "them"}` : ""}`;
}

const downstreamOf = (job) => address("/impact", { node: nodeId("job", job) });
const runLink = (run) =>
  address("/run", { id: run.runId, namespace: run.job.namespace, name: run.job.name });
const length = (run) =>
  run.startedAt
    ? duration(
        (Date.parse(run.endedAt || new Date().toISOString()) - Date.parse(run.startedAt)) / 1000,
      )
    : "";

// `plain`: of one job, whose name need not stand in each row. `most`: runs below none of the others.
export function RunRows({ page, plain, empty, most }) {
  const tree = useTree(
    page.items,
    (run) => run.runId,
    (run) => run.parent?.runId,
    most,
  );
  // Where the list ends: all that is below a run that started later has come.
  const end = Date.parse(page.items.at(-1)?.updatedAt);
  const cells = (run) => [
    {
      show: html`<a href=${runLink(run)}><${State} state=${run.state} /></a>
        ${run.error && html`<div class="small dim">${withoutPackage(run.error).slice(0, 160)}</div>`}`,
      text: run.state,
    },
    { show: html`<${Time} at=${run.startedAt} />`, text: run.startedAt || "" },
    length(run),
    { show: html`<${Id} id=${run.runId} />`, text: run.runId },
    { show: html`<${Time} at=${run.updatedAt} />`, text: run.updatedAt || "" },
  ];
  const job = (place) => {
    return html`${place.parent && html`<span class="dim">└ </span>`}<${JobLink}
        of=${place.one.job}
        below=${place.parent?.job.name}
      /><${Below}
        row=${place}
        noun="run"
        stateOf=${(run) => run.state}
        isCut=${page.more && !(Date.parse(place.one.startedAt) > end)}
      />`;
  };
  const row = (place) => [{ show: job(place), text: place.one.job.name }, ...cells(place.one)];
  return html`<${Grid}
    name="runs"
    empty=${empty || html`<${NoneYet} of="runs" />`}
    head=${[...(plain ? [] : ["job"]), "state", "started", "took", "run", "last event"]}
    rows=${plain ? page.items.map(cells) : tree.map(row)}
    all=${page.items.map((run) => [...(plain ? [] : [run.job.name]), ...cells(run)])}
  />`;
}

export function Run({ params }) {
  const id = params.get("id"),
    of = { namespace: params.get("namespace"), name: params.get("name") };
  const found = useData((signal) => get("/runs/detail", { runId: id, ...of }, signal), [id]);
  useTitle(found.data && `Run of ${found.data.job.name}`);
  return html`<${Loaded} of=${found} title="Run">${(
    run,
  ) => html`<h1>Run of <${JobLink} of=${run.job} /></h1><p class="sentence">
    <${State} state=${run.state} /> ${sentence(run)}</p>
    <p class="small dim">run <${Id} id=${run.runId} whole /> ${
      run.parent &&
      html`· below <a href=${address("/run", {
        id: run.parent.runId,
        namespace: run.parent.job.namespace,
        name: run.parent.job.name,
      })}>${run.parent.job.name}</a>`
    }</p>
    <p class="row"><a class="button" href=${graphOf("job", run.job)}>graph</a>
      <a class="button" href=${downstreamOf(run.job)}>downstream</a></p>
    ${run.notice && html`<p class="small">${run.notice}</p>`}
    ${logLinks(run.facets).map(
      (link) => html`<p>
    <a href=${link} target="_blank" rel="noopener noreferrer">log of this run</a></p>`,
    )}
    ${
      run.facets.errorMessage &&
      html`<div class="error"><pre tabindex="0">
    ${run.facets.errorMessage.message}</pre>${
      run.facets.errorMessage.stackTrace &&
      html`<details>
    <summary>stack trace</summary>
    <pre tabindex="0">${run.facets.errorMessage.stackTrace}</pre></details>`
    }</div>`
    }
    ${
      run.state === "FAIL" &&
      !run.facets.errorMessage &&
      !run.children?.failed &&
      html`<div class="note">Its producer gave no reason.</div>`
    }
    ${["FAIL", "LOST", "ABORT"].includes(run.state) && html`<${Downstream} job=${run.job} />`}
    <${Work} run=${run} /><details><summary>Raw facets</summary>
    <${Facets} facets=${run.facets} quarantined=${run.quarantined} /></details>`}<//>`;
}

// How much waits for what a run that did not complete was to write.
function Downstream({ job }) {
  const node = nodeId("job", job);
  const found = useData((signal) => get("/impact", { node, limit: 5000 }, signal), [node]);
  const { affected, complete } = found.data || {};
  if (!affected?.datasets && !affected?.jobs) return null;
  const counts = [
    affected.datasets && count(affected.datasets, "table"),
    affected.jobs && count(affected.jobs, "job"),
  ];
  return html`<p>Downstream of this job: <a href=${downstreamOf(job)}>
    ${complete ? "" : "at least "}${counts.filter(Boolean).join(", ")}</a>.</p>`;
}

// Links to logs that a producer (Airflow and others) gives in its facets.
function logLinks(facets) {
  const values = Object.values(facets)
    .flatMap((facet) => [facet, ...Object.values(facet || {})])
    .filter((value) => value && typeof value === "object");
  const links = values.flatMap((value) =>
    Object.entries(value)
      .filter(([key, text]) => /log_?url/i.test(key) && /^https?:/.test(text))
      .map(([, text]) => text),
  );
  return [...new Set(links)];
}

function sentence(run) {
  if (run.running) return `for ${length(run)}, last event ${ago(run.updatedAt)}.`;
  return run.endedAt ? `after ${length(run)}, ${ago(run.endedAt)}.` : "";
}

const MOST_CHILDREN_READ = 20;

// What a run did: by itself, or, as an application or DAG, by the runs below it.
function Work({ run }) {
  const found = useData((signal) => list("/runs", { parent: run.runId }, 300, signal), [run.runId]);
  const below = found.data?.items || [];
  const isIdle = !run.inputs?.length && !run.outputs?.length;
  const read = isIdle ? below.slice(0, MOST_CHILDREN_READ) : [];
  const details = useData(
    (signal) =>
      Promise.all(read.map((one) => get("/runs/detail", { runId: one.runId, ...one.job }, signal))),
    [read.map((one) => one.runId).join()],
  );
  const children = details.data || [];
  const union = (side) => [
    ...new Map(children.flatMap((one) => one[side] || []).map((one) => [one.id, one])).values(),
  ];
  // Of tables that runs further below touched, only the ids are here.
  const withOthers = (tables, ids) => [
    ...tables,
    ...ids.filter((id) => !tables.some((one) => one.id === id)).map((node) => ({ node })),
  ];
  const shown = children.length
    ? {
        state: run.state,
        inputs: withOthers(union("inputs"), run.reads),
        outputs: withOthers(union("outputs"), run.writes),
      }
    : run;
  return html`<${Children} run=${run} below=${below} />
    ${
      children.length > 0 &&
      html`<p class="dim">It reports no tables itself; these are of the runs below it.
        ${" "}${
          children.length < run.children.runs &&
          `Snapshots are shown of ${children.length} of the ${run.children.runs} runs.`
        }</p>`
    }<${Sides} run=${shown} />`;
}

// The run and those below it, on one axis of time.
function Children({ run, below }) {
  if (!below.length) return null;
  const all = [
    run,
    ...[...below].sort((a, b) => (a.startedAt || "").localeCompare(b.startedAt || "")),
  ].filter((one) => one.startedAt);
  const begin = Math.min(...all.map((one) => Date.parse(one.startedAt))),
    end = Math.max(
      ...all.map((one) => (one.endedAt ? Date.parse(one.endedAt) : Date.now())),
      begin + 1000,
    );
  const at = (moment) => (100 * (moment - begin)) / (end - begin);
  const lane = (one) => {
    const from = at(Date.parse(one.startedAt));
    const to = at(one.endedAt ? Date.parse(one.endedAt) : Date.now());
    return { left: `${from}%`, width: `${Math.max(0.6, to - from)}%` };
  };
  const direct = new Set(below.map((one) => one.runId));
  const deeper = (run.children?.failures || []).filter((one) => !direct.has(one.runId));
  const kind = { START: "run", RUNNING: "run", FAIL: "bad", LOST: "warn", ABORT: "warn" };
  return html`<h2>
    ${count(run.children?.runs || below.length, "run")} below it${
      run.children?.failed ? `, ${run.children.failed} failed` : ""
    }, in ${duration((end - begin) / 1000)}</h2><div class="panel scroll"><table class="gantt">
      <tbody>${all.map(
        (one) =>
          html`<tr><td class="nowrap">${one !== run && html`<span class="dim">└ </span>`}<a
            href=${runLink(one)} title=${one.job.name}><${Name}
              text=${one === run ? one.job.name : nameBelow(one.job.name, run.job.name)} /></a></td><td>
            <${State} state=${one.state} /></td><td><div class="lane" title=${length(one)}>
            <span class=${kind[one.state] || ""} style=${lane(one)}></span></div></td>
            <td class="nowrap">${length(one)}</td></tr>`,
      )}</tbody></table></div>${
        deeper.length > 0 &&
        html`<p>Failed further below: ${deeper.map(
          (one, i) =>
            html`${i ? ", " : ""}<a href=${runLink(one)}>${one.job.name}</a>${
              one.error && html` <span class="dim">${withoutPackage(one.error)}</span>`
            }`,
        )}</p>`
      }`;
}

const hasSnapshots = (one) => one.snapshots?.length > 0;
function Sides({ run }) {
  const rows = (datasets) =>
    (datasets || []).map((one) => [
      one.node
        ? { show: html`<${NodeLink} node=${one.node} />`, text: one.node }
        : { show: html`<${TableLink} of=${one} />`, text: tableName(one) },
      {
        show: html`${(one.snapshots || []).map(
          (s) => html`<div><${Id} id=${s.snapshotId} />
          ${
            s.barrierId !== null &&
            s.barrierId !== undefined &&
            html` <span class="chip aligned">barrier ${s.barrierId}</span>`
          }</div>`,
        )}`,
        text: (one.snapshots || []).map((s) => s.snapshotId).join(" "),
      },
    ]);
  // A run that failed declared its outputs; it has written what it tells the snapshots of.
  const hasWritten = !["FAIL", "LOST"].includes(run.state) || run.outputs?.some(hasSnapshots);
  return html`<h2>Read</h2>
    <${Grid} name="read" head=${["dataset", "snapshots"]} rows=${rows(run.inputs)}
      empty="It reports no inputs." /><h2>${hasWritten ? "Wrote" : "Was to write"}</h2>
      <${Grid} name="wrote" head=${["dataset", "snapshots"]} rows=${rows(run.outputs)}
        empty="It reports no outputs." />`;
}
