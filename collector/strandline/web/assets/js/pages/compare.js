// Whether tables agree: what each lacks, the late job, and SQL with snapshots that agree.
import { useState } from "preact/hooks";
import { get, list, post } from "../api.js";
import { count, duration, tableName } from "../format.js";
import {
  Grid,
  html,
  Id,
  Loaded,
  NoneYet,
  Reason,
  Said,
  Sql,
  TableLink,
  Time,
  wordHead,
} from "../parts.js";
import { go, useData, withParams } from "../state.js";

// By the value of `consistency`: the word of the board, and what the snapshots promise.
const WAYS = {
  strong: ["pipeline", "all tables that depend on each other agree"],
  weak: ["these tables", "they agree, whatever else depends on them"],
  cut: ["cut", "no recorded lineage contradicts it, without barriers"],
};

const WAY_HEADS = [
  wordHead("pipeline", "pipeline"),
  wordHead("weak", "these tables"),
  wordHead("cut", "cut"),
];

export function Compare({ params }) {
  const ids = (params.get("tables") || "").split("~").filter(Boolean);
  const tables = useData(
    (signal) =>
      Promise.all(
        ids.map((node) =>
          get("/lineage", { node, depth: 0 }, signal).then((found) =>
            found.nodes.find((one) => one.distance === 0),
          ),
        ),
      ),
    [params.get("tables")],
  );
  const choose = (next) => go(withParams({ tables: next.join("~") || null }));
  return html`<h1>Do these tables agree?</h1><${Chooser} ids=${ids} choose=${choose} />
    ${
      ids.length === 0 &&
      html`<p class="dim">Choose two tables to see whether their newest snapshots agree.${" "}
        <a href="/tables">All tables</a></p>`
    }${
      ids.length > 0 &&
      html`<${Loaded} of=${tables}>
        ${(found) =>
          html`<${Answer} tables=${found} ids=${ids} choose=${choose}
            way=${params.get("way")} />`}<//>`
    }`;
}

function Chooser({ ids, choose }) {
  const [text, setText] = useState("");
  const found = useData(
    (signal) =>
      text.length > 1
        ? get("/search", { q: text, limit: 12 }, signal).then((page) =>
            page.items.filter((one) => one.type === "dataset"),
          )
        : list("/datasets", {}, 12, signal).then((page) => page.items),
    [text],
    false,
  );
  if (!text && found.data && !found.data.length)
    return html`<div class="note"><${NoneYet} of="tables" /></div>`;
  return html`<div class="row">
    <input type="search" aria-label="Find a table to compare" placeholder="find a table"
      value=${text} onInput=${(e) => setText(e.target.value)} />${(found.data || [])
        .filter((one) => !ids.includes(one.id))
        .map(
          (one) =>
            html`<button onClick=${() => choose([...ids, one.id])}>+ ${tableName(one)}</button>`,
        )}${
        text.length > 1 &&
        found.data?.length === 0 &&
        html`<span class="dim">No table has this in its name.</span>`
      }</div>`;
}

function Answer({ tables, ids, choose, way }) {
  const body = { tables: tables.map(({ namespace, name }) => ({ namespace, name })) };
  const compared = useData((signal) => post("/compare", body, signal), [ids.join("~")]);
  const show = (version) =>
    version
      ? {
          show: html`<${Id} id=${version.snapshotId} />
            ${
              version.barrier !== null && version.barrier !== undefined
                ? html` <span class="chip aligned">${version.barrier}</span>`
                : ""
            }${
              version.barrier === null
                ? html` <span class="chip warn"
                  title=${version.untracked || "its latest snapshot, without any promise"}
                  >untracked</span
                >`
                : ""
            }`,
          text: version.snapshotId,
        }
      : "–";
  return html`<${Loaded} of=${compared}>${(found) => {
    const chosen = WAYS[way] ? way : "auto";
    const key = chosen === "auto" ? wayThatAnswers(found) : chosen;
    const of = (which, one) =>
      found.versions[which].tables?.find(
        (table) => table.namespace === one.namespace && table.name === one.name,
      );
    const version = found.versions[key];
    const doubt = key === "weak" ? doubtOf(found) : null;
    const lag = Math.max(0, ...(version.tables || []).map((one) => one.lagSeconds || 0));
    const row = (one, place) => [
      { show: html`<${TableLink} of=${one} />`, text: one.label },
      one.newest
        ? show({ snapshotId: one.newest.snapshotId, barrier: one.newest.barrierId ?? undefined })
        : "no snapshot",
      {
        show: html`<${Time} at=${one.newest?.committedAt} />`,
        text: one.newest?.committedAt || "",
      },
      ...Object.keys(WAYS).map((which) => show(of(which, one))),
      {
        show: html`<button class="icon" aria-label=${`Remove ${one.label}`} onClick=${() =>
          choose(ids.filter((_, i) => i !== place))}>✕</button>`,
        text: "",
      },
    ];
    const button = (value, label, about) => html`<button aria-pressed=${value === chosen}
      title=${about} onClick=${() => go(withParams({ way: value }), true)}>${label}</button>`;
    const blockers = new Map(found.blockedBy.map((one) => [one.reason, one]));
    return html`<p class="sentence"><${Said} text=${sentence(found)} /></p>
      <${Grid} name="compare" rows=${found.tables.map(row)}
        head=${["table", "latest", "committed", ...WAY_HEADS, "remove"]} />
      ${[...blockers.values()].map(
        (one) => html`<div class="note">Blocked by <${Reason} of=${one} />.</div>`,
      )}
      <h2>${doubt ? "SQL without a promise that all agree" : "SQL that agrees"}</h2>
      <p class="row" role="group" aria-label="Which snapshots">
        ${button("auto", "auto", "the pipeline's version, or where there is none the cut")}
        ${Object.entries(WAYS).map(([value, [label, about]]) =>
          button(value, label, found.versions[value].refused?.detail || about),
        )}<span class="dim small">
        ${WAYS[key][0]}: ${doubt || WAYS[key][1]}${
          lag ? `; ${duration(lag)} behind` : ""
        }</span></p>
      ${
        version.refused
          ? html`<div class="note">There is none: <${Said} text=${version.refused.detail} /></div>`
          : html`<${Queries}
              tables=${found.tables}
              snapshotOf=${(one) => of(key, one).snapshotId}
            />`
      }`;
  }}<//>`;
}

// A query a table, and beside them one that joins two tables.
function Queries({ tables, snapshotOf }) {
  const selects = tables
    .map((one) => `SELECT * FROM ${one.label} VERSION AS OF ${snapshotOf(one)};`)
    .join("\n");
  return html`<div class="beside"><div><h3>${count(tables.length, "query", "queries")}</h3>
    <${Sql} text=${selects} /></div>${
      tables.length === 2 &&
      html`<div><h3>1 join</h3><${Sql} text=${joinOf(tables, snapshotOf)} /></div>`
    }</div>`;
}

// The first way that has an answer; weak promises least.
const wayThatAnswers = ({ versions }) =>
  ["strong", "cut", "weak"].find((key) => !versions[key].refused) || "strong";

const joinOf = ([a, b], snapshotOf) =>
  [
    "SELECT *",
    `FROM ${a.label} VERSION AS OF ${snapshotOf(a)} AS a`,
    `JOIN ${b.label} VERSION AS OF ${snapshotOf(b)} AS b`,
    "  ON a.key = b.key -- the columns to join by",
  ].join("\n");

// Why the weak version of these tables promises less than that all agree; null when all do.
function doubtOf({ tables, versions }) {
  const weak = versions.weak.tables || [];
  const free = tables.filter((_, i) => weak[i]?.barrier === null).map((one) => one.label);
  const groups = new Set(weak.filter((one) => one.barrier !== null).map((one) => one.group)).size;
  const apart = [];
  if (groups > 1) apart.push(`the tables of ${groups} groups agree only with those of their own`);
  if (free.length === 1)
    apart.push(`${free[0]} is untracked: its latest snapshot, without any promise`);
  if (free.length > 1)
    apart.push(`${free.join(", ")} are untracked: their latest snapshots, without any promise`);
  return apart.length ? apart.join("; ") : null;
}

function sentence({ tables, versions }) {
  if (tables.length < 2) return "Choose a second table.";
  const latest = tables.map((one) => one.newest?.barrierId ?? null),
    known = latest.filter((one) => one !== null);
  // barriers of two groups are never compared
  const refused = versions.strong.refused;
  if (refused?.code === "untracked")
    return `No job with barriers writes all of these tables, so nothing proves that their newest snapshots agree.${
      versions.cut.refused ? "" : " The cut below contradicts no recorded lineage."
    }`;
  if (refused?.code === "groups") return `These are ${refused.detail}`;
  if (known.length < latest.length)
    return (
      refused?.detail ||
      "Not all of the newest snapshots carry a barrier, so reading them together may mix moments."
    );
  if (new Set(known).size === 1)
    return `Their newest snapshots agree: all stand at barrier ${known[0]}.`;
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const late = tables.filter((_, i) => latest[i] < high).map((one) => one.label);
  const lack = `${late.join(", ")} ${late.length > 1 ? "lack" : "lacks"} what the others show`;
  return `Their newest snapshots disagree: barriers ${low} to ${high}. ${lack}.`;
}
