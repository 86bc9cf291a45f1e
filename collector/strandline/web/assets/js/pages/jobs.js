// Jobs: the list, and one with its runs, barriers, code and facets.
import { address, get, list, send } from "../api.js";
import { listed, nodeId, withoutPackage } from "../format.js";
import {
  Below,
  Confirm,
  Facets,
  Grid,
  graphOf,
  html,
  JobLink,
  Loaded,
  NoMatch,
  NoneYet,
  Said,
  Sql,
  State,
  TableLink,
  tabOf,
  Tabs,
  Time,
  useTree,
  Word,
  wordHead,
} from "../parts.js";
import { useData, useTitle, withParams } from "../state.js";
import { named, Neighbours } from "./table.js";
import { RunRows } from "./runs.js";

export function Jobs({ params }) {
  const namespace = params.get("namespace");
  const found = useData((signal) => list("/jobs", { namespace }, 500, signal), [namespace]);
  return html`<h1>Jobs</h1>
    <${Loaded} of=${found}>${(page) => html`<p class="dim">
        ${listed(page, "job")}
        ${namespace && html` of ${namespace} · <a href="/jobs">all</a>`}</p>
      <${JobRows} jobs=${page.items} isCut=${page.more} empty=${
        namespace && html`<${NoMatch} of="jobs" all="/jobs" />`
      } />`}<//>`;
}

const jobKey = (job) => nodeId("job", job);
// The job of the run above the job's latest run: an application, a DAG, a dbt run.
const parentOf = (job) => job.parent && jobKey(job.parent);

const MOST_NAMED = 8;
const JOB_HEAD = ["job", "namespace", "latest run", "started", "ended", wordHead("group", "group")];

function JobRows({ jobs, isCut, empty }) {
  const tree = useTree(jobs, jobKey, parentOf);
  const cells = (one) => [
    {
      show: html`<a href=${address("/jobs", { namespace: one.namespace })}>${one.namespace}</a>`,
      text: one.namespace,
    },
    one.latestRun
      ? { show: html`<${State} state=${one.latestRun.state} />`, text: one.latestRun.state }
      : "",
    {
      show: html`<${Time} at=${one.latestRun?.startedAt} />`,
      text: one.latestRun?.startedAt || "",
    },
    { show: html`<${Time} at=${one.latestRun?.endedAt} />`, text: one.latestRun?.endedAt || "" },
    one.group
      ? {
          show: html`<a href=${address("/group", { name: one.group })}>${one.group}</a>`,
          text: one.group,
        }
      : "",
  ];
  const row = (place) => {
    const show = html`${place.parent && html`<span class="dim">└ </span>`}<${JobLink}
        of=${place.one}
        below=${place.parent?.name}
      /><${Below}
        row=${place}
        noun="job"
        stateOf=${(one) => one.latestRun?.state}
        isCut=${isCut}
      />`;
    return [{ show, text: place.one.name }, ...cells(place.one)];
  };
  return html`<${Grid}
    name="jobs"
    empty=${empty || html`<${NoneYet} of="jobs" />`}
    head=${JOB_HEAD}
    rows=${tree.map(row)}
    all=${jobs.map((one) => [one.name, ...cells(one)])}
  />`;
}

const TABS = [
  ["runs", "Runs"],
  ["lineage", "Lineage"],
  ["code", "Code"],
  ["barriers", "Barriers"],
  ["facets", "Raw facets"],
];

export function Job({ params }) {
  const job = useData(
    (signal) => named(params, signal, "job").then((one) => get("/jobs/detail", one, signal)),
    [params.get("node"), params.get("namespace"), params.get("name")],
  );
  const tab = tabOf(TABS, params);
  useTitle(job.data?.name);
  return html`<${Loaded} of=${job} title="Job">${(
    one,
  ) => html`<h1>${one.name}</h1><p class="sentence">
    ${
      one.latestRun
        ? html`<${State} state=${one.latestRun.state} /> ${
            one.latestRun.running
              ? html`since <${Time} at=${one.latestRun.startedAt} />`
              : html`ended <${Time} at=${one.latestRun.endedAt} />`
          }${one.latestRun.error ? html` <span class="dim">${withoutPackage(one.latestRun.error)}</span>` : ""}`
        : "It has not run; others name it."
    }</p>
    <${ReadsAndWrites} job=${one} />
    <p class="row"><a class="button" href=${graphOf("job", one)}>graph</a>
    <a class="button" href=${address("/impact", { node: one.id })}>downstream</a>
    ${
      one.group &&
      html`<a class="button" href=${address("/group", { name: one.group })}>group ${one.group}</a>`
    }<span class="dim small">${one.namespace}</span></p>
      ${one.group && html`<${InGroup} job=${one} />`}
    <${Tabs} of=${TABS} now=${tab} link=${(key) => withParams({ tab: key === "runs" ? null : key })} />
    ${tab === "runs" && html`<${OfJob} one=${one} />`}${
      tab === "lineage" && html`<${Neighbours} node=${one.id} sides=${["Reads", "Writes"]} />`
    }${tab === "barriers" && html`<${Barriers} one=${one} />`}${
      tab === "facets" && html`<${Facets} facets=${one.facets} quarantined=${one.quarantined} />`
    }
    ${
      tab === "code" &&
      (one.facets.sql?.query || one.facets.sourceCode?.sourceCode
        ? html`<${Sql} text=${one.facets.sql?.query || one.facets.sourceCode.sourceCode} />`
        : html`<div class="note">Its producer reports no code.</div>`)
    }`}<//>`;
}

// The tables of its recent runs.
function ReadsAndWrites({ job }) {
  const graph = useData((signal) => get("/lineage", { node: job.id, depth: 1 }, signal), [job.id]);
  if (!graph.data) return null;
  const { nodes, edges } = graph.data;
  const tables = (ids) =>
    nodes
      .filter((node) => node.type === "dataset" && ids.has(node.id))
      .map((node, i) => html`${i ? ", " : ""}<${TableLink} of=${node} />`);
  const reads = tables(new Set(edges.map((edge) => edge.source)));
  const writes = tables(new Set(edges.map((edge) => edge.target)));
  const cut = (found) =>
    found.length > MOST_NAMED
      ? [...found.slice(0, MOST_NAMED), ` and ${found.length - MOST_NAMED} more`]
      : found;
  if (!reads.length && !writes.length) return null;
  return html`<p>Reads ${reads.length ? cut(reads) : "nothing that is recorded"};
    ${" "}writes ${writes.length ? cut(writes) : "nothing that is recorded"}.</p>`;
}

// What the job holds back in its group, and how to take it out.
function InGroup({ job }) {
  const board = useData(
    (signal) => get("/groups/board", { group: job.group, columns: 1 }, signal),
    [job.group],
  );
  const holder = board.data?.blockedBy.find(
    (one) => one.job?.namespace === job.namespace && one.job?.name === job.name,
  );
  const why = holder?.reason.replace(`${job.name}: `, "");
  const retire = () =>
    send(
      "POST",
      address(`/unregister/${encodeURIComponent(job.name)}`, { namespace: job.namespace }),
    );
  return html`${
    holder &&
    html`<div class="note">It blocks barrier ${holder.barrier} of group <a
      href=${address("/group", { name: job.group })}>${job.group}</a>: <${Said} text=${why} />.</div>`
  }
    <details><summary>Retire this job</summary>
    <p>To <${Word} of="retire">retire<//> a job is to stop waiting for it. Its tables
    leave group ${job.group}: later versions do not wait for them and do not include
    them. Its runs, snapshots and lineage stay.</p>
    <${Confirm} label="retire…" question=${`Take ${job.name} out of group ${job.group}?`}
      act=${retire} /></details>`;
}

function OfJob({ one }) {
  const found = useData(
    (signal) => list("/runs", { namespace: one.namespace, name: one.name }, 100, signal),
    [one.id],
  );
  return html`<${Loaded} of=${found}>${(page) => html`<${RunRows}
    page=${page}
    plain
    empty="No runs are stored."
  />`}<//>`;
}

function Barriers({ one }) {
  const found = useData(
    (signal) => list("/jobs/barriers", { namespace: one.namespace, name: one.name }, 100, signal),
    [one.id],
  );
  return html`<${Loaded} of=${found}>
    ${({ items }) =>
      html`<${Grid} name="barriers" empty="It reports no barriers." head=${[
        "barrier",
        "batch",
        "phase",
        "committed",
        "took",
      ]} rows=${items.map((b) => [
        b.barrierId,
        b.batchId ?? "",
        b.phase,
        { show: html`<${Time} at=${b.committedAt} />`, text: b.committedAt || "" },
        b.startedAt && b.committedAt
          ? `${((Date.parse(b.committedAt) - Date.parse(b.startedAt)) / 1000).toFixed(1)} s`
          : "",
      ])} />`}<//>`;
}
