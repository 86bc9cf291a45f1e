// Why do these tables disagree? What each lacks, the late job, and SQL with snapshots that agree.
import { useState } from "preact/hooks";
import { get, list, post } from "../api.js";
import { duration, tableName } from "../format.js";
import { Grid, html, Id, JobLink, Loaded, Sql, TableLink, Time } from "../parts.js";
import { go, useData, withParams } from "../state.js";

const WAYS = [
  ["strong", "strong: all tables that depend on each other agree"],
  ["weak", "weak: these tables agree"],
  ["cut", "a cut by data lineage, without barriers"],
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
  return html`<h1>Why do these tables disagree?</h1><${Chooser} ids=${ids} choose=${choose} />
    ${
      ids.length === 0 &&
      html`<p class="dim">Choose two tables to see whether their newest snapshots agree.</p>`
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
  return html`<div class="row">
    <input type="search" aria-label="Find a table to compare" placeholder="find a table"
      value=${text} onInput=${(e) => setText(e.target.value)} />${(found.data || [])
        .filter((one) => !ids.includes(one.id))
        .map(
          (one) =>
            html`<button onClick=${() => choose([...ids, one.id])}>+ ${tableName(one)}</button>`,
        )}</div>`;
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
                  title="its latest snapshot, without any promise">untracked</span>`
                : ""
            }`,
          text: version.snapshotId,
        }
      : "–";
  return html`<${Loaded} of=${compared}>${(found) => {
    const chosen = WAYS.findIndex(([one]) => one === (way || wayThatAnswers(found))),
      of = (key, one) =>
        found.versions[key].tables?.find(
          (t) => t.namespace === one.namespace && t.name === one.name,
        );
    const key = WAYS[chosen][0],
      version = found.versions[key],
      doubt = doubtOf(found),
      lag = Math.max(0, ...(version.tables || []).map((one) => one.lagSeconds || 0));
    const sql =
      version.tables &&
      found.tables
        .map((one) => `SELECT * FROM ${one.label} VERSION AS OF ${of(key, one).snapshotId};`)
        .join("\n");
    return html`<p class="sentence">${sentence(found)}</p>
      <${Grid} name="compare" head=${[
        "table",
        "newest",
        "committed",
        "strong",
        "weak",
        "cut",
        "",
      ]} rows=${found.tables.map((one) => [
        { show: html`<${TableLink} of=${one} />`, text: one.label },
        one.newest
          ? show({
              snapshotId: one.newest.snapshotId,
              barrier: one.newest.barrierId ?? undefined,
            })
          : "no snapshot",
        {
          show: html`<${Time} at=${one.newest?.committedAt} />`,
          text: one.newest?.committedAt || "",
        },
        ...WAYS.map(([w]) => show(of(w, one))),
        {
          show: html`<button class="icon" aria-label=${`Remove ${one.label}`} onClick=${() =>
            choose(ids.filter((id) => !id.endsWith(`:${one.name}`)))}>✕</button>`,
          text: "",
        },
      ])} />
      ${[...new Map(found.blockedBy.map((one) => [one.reason, one])).values()].map(
        (one) =>
          html`<div class="note">Blocked by ${one.reason}${
            one.job && html` · <${JobLink} of=${one.job} />`
          }</div>`,
      )}
      <h2>${
        key === "weak" && doubt ? "SQL without a promise that all agree" : "SQL that agrees"
      }</h2><p class="row" role="group" aria-label="Which snapshots">${WAYS.map(
        ([w, about], i) =>
          html`<button aria-pressed=${i === chosen} title=${
            found.versions[w].refused?.detail || (w === "weak" && doubt) || about
          } onClick=${() => go(withParams({ way: w }), true)}>${w}</button>`,
      )}<span class="dim small">
        ${
          (key === "weak" && doubt) || WAYS[chosen][1]
        }${lag ? `; ${duration(lag)} behind` : ""}</span></p>
      ${
        version.refused
          ? html`<div class="note">There is none: ${version.refused.detail}</div>`
          : html`<${Sql} text=${sql} />
            ${
              found.tables.length === 2 &&
              html`<${Sql} text=${joinOf(found.tables, (one) => of(key, one).snapshotId)} />`
            }`
      }`;
  }}<//>`;
}

// The first way that has an answer; weak promises least.
const wayThatAnswers = ({ versions }) =>
  ["strong", "cut", "weak"].find((way) => !versions[way].refused) || "strong";

const joinOf = ([a, b], snapshotOf) =>
  `SELECT *\nFROM ${a.label} VERSION AS OF ${snapshotOf(a)} AS a\nJOIN ${b.label} VERSION AS OF ${snapshotOf(b)} AS b ON /* a.key = b.key */`;

// Why the weak version of these tables promises less than that all agree; null when all do.
function doubtOf({ tables, versions }) {
  const weak = versions.weak.tables || [],
    free = tables.filter((_, i) => weak[i]?.barrier === null).map((one) => one.label);
  const groups = new Set(weak.filter((one) => one.barrier !== null).map((one) => one.group)).size;
  const apart =
    groups > 1 ? [`the tables of ${groups} groups agree only with those of their own`] : [];
  if (free.length)
    apart.push(
      `${free.join(", ")} ${free.length > 1 ? "are untracked: their latest snapshots" : "is untracked: its latest snapshot"}, without any promise`,
    );
  return apart.length ? `weak: ${apart.join("; ")}` : null;
}

function sentence({ tables, versions }) {
  if (tables.length < 2) return "Choose a second table.";
  const latest = tables.map((one) => one.newest?.barrierId ?? null),
    known = latest.filter((one) => one !== null);
  // barriers of two groups are never compared
  const apart = ["groups", "untracked"].includes(versions.strong.refused?.code);
  if (apart || known.length < latest.length)
    return (
      versions.strong.refused?.detail ||
      "Not all of the newest snapshots carry a barrier, so reading them together may mix moments."
    );
  if (new Set(known).size === 1)
    return `Their newest snapshots agree: all stand at barrier ${known[0]}.`;
  const high = Math.max(...known),
    late = tables.filter((_, i) => latest[i] < high).map((one) => one.label);
  return `Their newest snapshots disagree: barriers ${Math.min(...known)} to ${high}. ${late.join(", ")} ${late.length > 1 ? "lack" : "lacks"} what the others show.`;
}
