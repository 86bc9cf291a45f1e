// A table: its snapshots as a strip, who read and wrote each, columns, runs, facets; and the list
// of all tables.
import { useMemo } from "preact/hooks";
import { address, get, list } from "../api.js";
import { ago, count, duration, listed, nodeId, number, ruleName, tableName } from "../format.js";
import {
  Facets,
  Grid,
  graphOf,
  html,
  Id,
  JobLink,
  linkOf,
  Loaded,
  Name,
  NodeLink,
  NoMatch,
  None,
  NoneYet,
  State,
  TableLink,
  tabOf,
  Tabs,
  Time,
  Word,
  wordHead,
} from "../parts.js";
import { merged } from "../graph/model.js";
import { go, useData, useTitle, withParams } from "../state.js";

// The namespace and name of what the address asks for. A `node` may be a name; that of a table on
// the address of a job, or the other way round, leads to its own screen.
export const named = async (params, signal, kind) => {
  if (!params.get("node"))
    return { namespace: params.get("namespace") || "", name: params.get("name") || "" };
  const { nodes } = await get("/lineage", { node: params.get("node"), depth: 0 }, signal);
  const { type, namespace, name } = nodes.find((node) => node.distance === 0);
  if (type !== kind) go(linkOf(type, { namespace, name }), true);
  return { namespace, name };
};

export function Tables({ params }) {
  const namespace = params.get("namespace");
  const found = useData((signal) => list("/datasets", { namespace }, 500, signal), [namespace]);
  const row = (one) => {
    const run = one.latestWrite;
    const snapshot = one.latestSnapshot;
    const at = snapshot?.committedAt || run?.endedAt || run?.startedAt;
    return [
      { show: html`<${TableLink} of=${one} />`, text: tableName(one) },
      {
        show: html`<a href=${address("/tables", { namespace: one.namespace })}
          ><${Name} text=${one.namespace || "none"} /></a>`,
        text: one.namespace,
      },
      run
        ? {
            show: html`<${JobLink} of=${run.job} /><div><${State} state=${run.state} /></div>`,
            text: run.job.name,
          }
        : { show: html`<span class="dim">none: a source</span>`, text: "" },
      {
        show: html`<${Time} at=${at} />${
          at &&
          !snapshot &&
          html`<div class="small dim nowrap" title="its writer reports no snapshots">end of run</div>`
        }`,
        text: at || "",
      },
      { show: html`${rowsOf(snapshot)}`, text: snapshot?.numberOfRows ?? "" },
      { show: html`<${Lag} seconds=${one.lagSeconds} />`, text: one.lagSeconds ?? "" },
    ];
  };
  const all = html` of ${namespace} · <a href="/tables">all</a>`;
  return html`<h1>Tables and other datasets</h1>
    <${Loaded} of=${found}>${(page) => html`<p class="dim">
        ${listed(page, "dataset")}${namespace && all}.
        ${page.more ? " Search finds the others." : ""}</p>
      <${Grid}
        name="datasets"
        empty=${
          namespace
            ? html`<${NoMatch} of="tables" all="/tables" />`
            : html`<${NoneYet} of="tables" />`
        }
        head=${["name", "namespace", "writer", "last commit", "rows", wordHead("lag", "lag")]}
        rows=${page.items.map(row)}
      />`}<//>`;
}

const rowsOf = (snapshot) =>
  snapshot?.numberOfRows === null || snapshot?.numberOfRows === undefined
    ? html`<${None} />`
    : html`<span class="nowrap">${number(snapshot.numberOfRows)}</span>`;

function Lag({ seconds }) {
  if (seconds === null || seconds === undefined) return html`<${None} why="it has no barriers" />`;
  return seconds > 0
    ? html`<span class="chip warn">◷ ${duration(seconds)}</span>`
    : html`<span class="chip ok">✓ none</span>`;
}

export function Table({ params }) {
  const table = useData(
    (signal) =>
      named(params, signal, "dataset").then((one) => get("/datasets/detail", one, signal)),
    [params.get("node"), params.get("namespace"), params.get("name")],
  );
  useTitle(table.data && tableName(table.data));
  return html`<${Loaded} of=${table} title="Table">
    ${(detail) => html`<${Shown} table=${detail} params=${params} />`}<//>`;
}

function Shown({ table, params }) {
  const one = { namespace: table.namespace, name: table.name };
  const hasBarriers = table.lagSeconds !== null;
  const delays = useData(
    (signal) => (hasBarriers ? get("/delays", one, signal) : { refused: true }),
    [table.id, hasBarriers],
  );
  const tabs = [
    ["snapshots", "Snapshots"],
    ["columns", "Columns"],
    ["lineage", "Lineage"],
    ["delay", "Delay"],
    ["expiry", "Expiry"],
    ["facets", "Raw facets"],
  ];
  const tab = tabOf(tabs, params);
  return html`<h1>${tableName(table)}</h1><p class="sentence">${sentence(table, delays.data)}</p>
    <p class="row"><a class="button" href=${graphOf("dataset", table)}>graph</a>
    <a class="button" href=${address("/compare", { tables: nodeId("dataset", table) })}>compare</a>
    <a class="button" href=${address("/impact", one)}>impact if dropped</a></p>
    <details><summary>Storage names</summary><p class="small dim">
    ${table.names.map(
      (name, i) => html`${i ? " · " : ""}<span class="mono">
    ${name.namespace} ${name.name}</span>`,
    )}</p></details>
    <${Tabs} of=${tabs} now=${tab} link=${(key) =>
      withParams({ tab: key === "snapshots" ? null : key, snapshot: null, other: null })} />
    ${
      tab === "snapshots" && html`<${Snapshots} table=${table} params=${params} />`
    }${tab === "columns" && html`<${Columns} table=${table} />`}${
      tab === "lineage" && html`<${Neighbours} node=${table.id} />`
    }
    ${
      tab === "delay" &&
      html`<${Loaded} of=${delays}>
    ${(found) => html`<${Delay} ...${found} />`}<//>`
    }${tab === "expiry" && html`<${Expiry} one=${one} />`}${
      tab === "facets" &&
      html`<${Facets} facets=${table.facets} quarantined=${table.quarantined} />`
    }`;
}

function sentence(table, delays) {
  const stale = delays?.staleness;
  if (stale?.seconds > 0)
    return html`${duration(stale.seconds)} behind: barrier ${stale.barrier} is missing${
      stale.job
        ? html`; ${stale.localSeconds > 0 ? "its" : "upstream"} job <${JobLink}
            of=${stale.job} /> has not made it`
        : ""
    }.`;
  if (stale) return "Up to date: it shows every barrier of its group.";
  return `Last event ${ago(table.updatedAt)}.`;
}

function Snapshots({ table, params }) {
  const one = { namespace: table.namespace, name: table.name };
  const found = useData((signal) => list("/datasets/snapshots", one, 200, signal), [table.id]);
  const expiry = useData(
    (signal) => get("/expirable", { ...one, limit: 1 }, signal).catch(() => null),
    [table.id],
  );
  const chosen = params.get("snapshot") || found.data?.items[0]?.snapshotId,
    other = params.get("other");
  const gone = useMemo(() => new Set(expiry.data?.expirable || []), [expiry.data]);
  const pick = (id, event) =>
    go(
      withParams(
        event.shiftKey && chosen && id !== chosen
          ? { other: id }
          : { snapshot: id === chosen ? null : id, other: null },
      ),
      true,
    );
  return html`<${Loaded} of=${found}>${({ items, more }) =>
    items.length === 0
      ? html`<div class="note">No snapshots: its writer reports none. The Lineage tab works
        without.</div>`
      : html`
    <div class="panel"><div class="strip" role="group" aria-label="Snapshots, the newest right">
    ${items.map(
      (snap) =>
        html`<${Mark}
          snap=${snap}
          isGone=${gone.has(snap.snapshotId)}
          isChosen=${snap.snapshotId === chosen || snap.snapshotId === other}
          pick=${pick}
        />`,
    )}</div>
      <div class="legend"><span>above each mark: <${Word} of="barrier">barrier<//></span>
      <span>below: number of rows</span>
      <span>outlined: no barrier</span><span>grey: <${Word} of="expirable">expirable<//></span>
      <span>shift and click: compare two</span>
      ${
        items[0].committedAt
          ? html`<span>newest <${Time} at=${items[0].committedAt} /></span>`
          : html`<span>its writer reports no time of commits</span>`
      }</div></div>
    ${more && html`<p class="dim">the newest 200 are shown</p>`}
    ${
      chosen && other
        ? html`<${Two} items=${items} a=${chosen} b=${other} />`
        : chosen
          ? html`<${One} table=${one} id=${chosen} snap=${items.find(
              (s) => s.snapshotId === chosen,
            )} />`
          : html`<p class="dim">Choose a snapshot to see what it was made from, and what was made
            from it.</p>`
    }`}<//>`;
}

// One snapshot of the strip.
function Mark({ snap, isGone, isChosen, pick }) {
  const { snapshotId, barrierId, numberOfRows } = snap;
  const classes = ["snap", barrierId === null && "plain", isGone && "gone"];
  const about = [
    snapshotId,
    snap.operation || "snapshot",
    numberOfRows !== null && count(numberOfRows, "row"),
    ago(snap.committedAt),
    snap.observed && "observed",
    isGone && "may expire",
  ];
  const label = `Snapshot ${snapshotId}${barrierId === null ? "" : `, barrier ${barrierId}`}`;
  return html`<button class=${classes.filter(Boolean).join(" ")} aria-pressed=${isChosen}
    aria-label=${label} title=${about.filter(Boolean).join(", ")}
      onClick=${(event) => pick(snapshotId, event)}><b>${barrierId ?? "·"}</b><i></i>
      <span class="dim small">${numberOfRows ?? ""}</span></button>`;
}

function One({ table, id, snap }) {
  const up = useData(
    (signal) =>
      get(
        "/snapshots/lineage",
        { ...table, snapshotId: id, direction: "upstream", depth: 20 },
        signal,
      ),
    [id],
    false,
  );
  const down = useData(
    (signal) =>
      get(
        "/snapshots/lineage",
        { ...table, snapshotId: id, direction: "downstream", depth: 3 },
        signal,
      ),
    [id],
    false,
  );
  return html`<h2>Snapshot <${Id} id=${id} whole /></h2><p>
    <a class="button" href=${address("/graph", {
      node: nodeId("dataset", table),
      snapshot: id,
      of: nodeId("dataset", table),
    })}>its path in the graph</a></p>
    ${
      snap &&
      html`<p>${snap.operation || "committed"}
    ${" "}${snap.committedAt && html`<${Time} at=${snap.committedAt} />`}
    ${snap.numberOfRows !== null && `, ${count(snap.numberOfRows, "row")}`}${
      snap.barrierId !== null && html` <span class="chip aligned">barrier ${snap.barrierId}</span>`
    } ${
      snap.observed && html`<span class="chip warn">observed, not proven</span>`
    } ${snap.approximate && html`<span class="chip warn">approximate</span>`} ${
      snap.parentSnapshotId &&
      html`<span class="dim">after <${Id} id=${snap.parentSnapshotId} /></span>`
    }</p>`
    }
    <h2>Made from, down to the base tables</h2><${Loaded} of=${up}>
    ${(graph) => html`<div class="panel pad"><${Tree} graph=${graph} upstream /></div>`}<//>
    <h2>Went into</h2><${Loaded} of=${down}>${(graph) => html`<div class="panel pad">
    <${Tree} graph=${graph} /></div>`}<//>`;
}

function Tree({ graph, upstream }) {
  const nodes = new Map(graph.nodes.map((one) => [one.id, one]));
  const [here, there] = upstream ? ["target", "source"] : ["source", "target"];
  const [begin, ...starts] = graph.nodes.filter((one) => one.distance === 0);
  const rows = upstream && starts.find((one) => one.snapshotId === begin?.sameRowsAs),
    besides = (one) => (upstream && one.inputsOfUnknownSnapshots) || [];
  const show = (id, via, seen) => {
    const one = nodes.get(id),
      next = graph.edges.filter((edge) => edge[here] === id && !seen.has(edge[there])),
      unknown = besides(one);
    return html`<li>
      <a href=${address("/table", {
        namespace: one.namespace,
        name: one.name,
        snapshot: one.snapshotId,
      })}>${tableName(one)}</a> <${Id} id=${one.snapshotId} />${
        one.barrierId !== null && html` <span class="chip aligned">barrier ${one.barrierId}</span>`
      }${via?.observed && html` <span class="chip warn">observed</span>`}
      ${via && html` <span class="dim small">by ${html`<${NodeLink} node=${via.job} />`}</span>`}${
        next.length + unknown.length > 0 &&
        html`<ul class="tree">
          ${next.map((edge) => show(edge[there], edge, new Set([...seen, id])))}${unknown.map(
            (input) =>
              html`<li><${TableLink} of=${input} /> <span
                class="dim">at which snapshot is not known</span></li>`,
          )}</ul>`
      }</li>`;
  };
  if (!begin || graph.edges.length + besides(begin).length === 0)
    return html`<span class="dim">
      ${
        upstream
          ? "Nothing is known that it was made from: a base table, or its writer reports no inputs."
          : "Nothing is known that read it."
      }</span>`;
  return html`<ul class="tree">${show(begin.id, null, new Set())}</ul>
    ${
      rows &&
      html`<p class="dim small">It shows the rows of</p><ul class="tree">
    ${show(rows.id, null, new Set())}</ul>`
    }${!graph.complete && html`<p class="dim">Not all of it is shown.</p>`}`;
}

function Two({ items, a, b }) {
  const [from, to] = [a, b]
    .map((id) => items.findIndex((one) => one.snapshotId === id))
    .sort((x, y) => y - x);
  const lying = items.slice(to, from + 1);
  return html`<h2>Between <${Id} id=${items[from].snapshotId} /> and <${Id}
    id=${items[to].snapshotId} /></h2><p>${count(lying.length - 1, "commit")} in ${duration(
      (Date.parse(items[to].committedAt) - Date.parse(items[from].committedAt)) / 1000,
    )}.</p>
    <${Grid} name="snapshots" head=${[
      "snapshot",
      "barrier",
      "operation",
      "rows",
      "committed",
    ]} rows=${lying.map((one) => [
      { show: html`<${Id} id=${one.snapshotId} whole />`, text: one.snapshotId },
      one.barrierId ?? "",
      one.operation || "",
      one.numberOfRows ?? "",
      { show: html`<${Time} at=${one.committedAt} />`, text: one.committedAt },
    ])} />`;
}

function Columns({ table }) {
  const fields = table.facets.schema?.fields || [];
  // Without a schema, what its readers name tells columns too.
  const direction = fields.length ? "upstream" : "both";
  const graph = useData(
    (signal) =>
      get("/lineage", { node: table.id, granularity: "column", direction, depth: 1 }, signal),
    [table.id],
  );
  return html`<${Loaded} of=${graph}>${({ nodes, edges }) => {
    const by = new Map(nodes.map((one) => [one.id, one]));
    const names = [
      ...new Set([
        ...fields.map((one) => one.name),
        ...nodes.filter((one) => one.distance === 0 && one.column).map((one) => one.column),
      ]),
    ];
    // Each column that goes into this one once, with all the ways in which it does.
    const origins = (name) => {
      const sources = new Map();
      for (const edge of edges) {
        const target = by.get(edge.target);
        if (target?.column !== name || target.distance !== 0) continue;
        const how = (edge.transformations || edge.how || [edge])
          .map((one) => one.subtype || one.type)
          .filter(Boolean);
        sources.set(edge.source, [...(sources.get(edge.source) || []), ...how]);
      }
      return [...sources].map(([id, how]) => ({ from: by.get(id), how: [...new Set(how)] }));
    };
    const row = (name) => {
      const found = origins(name);
      return [
        { show: html`<${ColumnLink} table=${table} name=${name} />`, text: name },
        typeOf(name, fields),
        {
          show: found.length
            ? found.map(({ from, how }) => html`<${Origin} from=${from} how=${how} />`)
            : html`<span class="dim">no origin is known</span>`,
          text: found.map(({ from, how }) => `${from.id} ${how.join(" ")}`).join("; "),
        },
      ];
    };
    return html`<${Grid}
      name="columns"
      empty="No columns are known."
      head=${["column", "type", "comes from"]}
      rows=${names.map(row)}
    />`;
  }}<//>`;
}

const ColumnLink = ({ table, name }) =>
  html`<a
    class="mono"
    href=${address("/graph", { node: table.id, column: name, of: table.id })}
    >${name}</a
  >`;

function typeOf(name, fields) {
  const field = fields.find((one) => one.name === name);
  if (field) return field.type || "";
  return {
    show: html`<span class="dim" title="column lineage names it, no schema does"
      >not in its schema</span
    >`,
    text: "",
  };
}

// A source column, with how its values go in as tags.
const Origin = ({ from, how }) => html`<div class="origin">
  <${TableLink} of=${from} />${
    from.column
      ? html`<span class="mono">.${from.column}</span>`
      : html` <span class="dim small">which column is not known</span>`
  }
  ${how.map((one) => html` <span class="chip">${one.toLowerCase().replaceAll("_", " ")}</span>`)}
</div>`;

// `sides`: the headings of what comes before and after.
export function Neighbours({ node, sides = ["Comes from", "Goes to"] }) {
  const graph = useData((signal) => get("/lineage", { node, depth: 1 }, signal), [node]);
  return html`<${Loaded} of=${graph}>${(answer) => {
    const { nodes, edges } = merged([answer]);
    const by = new Map(nodes.map((one) => [one.id, one]));
    // a micro-batch's name: its query too
    const here = new Set(nodes.filter((one) => one.distance === 0).map((one) => one.id));
    const side = (into) =>
      edges
        .filter((edge) => here.has(into ? edge.target : edge.source))
        .map((edge) => [edge, by.get(into ? edge.source : edge.target)]);
    const row =
      (hasStates) =>
      ([edge, one]) => {
        const seen = edge.lastSeen || edge.until || edge.since;
        const link = one.type === "job" ? JobLink : TableLink;
        return [
          { show: html`<${link} of=${one} />`, text: one.name },
          ...(hasStates ? [stateOf(one)] : []),
          ruleName(edge.rule),
          { show: html`<${Time} at=${seen} />`, text: seen || "" },
        ];
      };
    const part = (title, found) => {
      const hasStates = found.some(([, one]) => one.type === "job");
      return html`<h2>${title}</h2>
        <${Grid}
          name="neighbours"
          head=${["name", ...(hasStates ? ["state"] : []), "known from", "last seen"]}
          empty="Nothing is known."
          rows=${found.map(row(hasStates))}
        />`;
    };
    return html`${part(sides[0], side(true))}${part(sides[1], side(false))}`;
  }}<//>`;
}

// The state of a job's latest run; what it reads and writes may be known from an earlier one.
function stateOf({ state, earlier }) {
  if (!state) return "";
  const show = html`<${State} state=${state} />${
    earlier && html`<div class="small dim">this edge is of an earlier run</div>`
  }`;
  return { show, text: state };
}

export function Parts({ delay }) {
  const whole = delay.parts.reduce((sum, part) => sum + part.seconds, 0) || 1;
  const most = delay.bottleneck;
  const same = (part) =>
    most &&
    part.kind === most.kind &&
    part.seconds === most.seconds &&
    part.table.name === most.table.name;
  const shown = delay.parts.filter((part) => part.seconds > 0);
  const textOf = (part) => `${part.job?.name || part.table.label} ${duration(part.seconds)}`;
  const about = shown.map((part) => `${part.kind} ${textOf(part)}`).join(", ");
  return html`<div class="bar" role="img" aria-label=${about}>${shown.map(
    (part) =>
      html`<span
        class=${`${part.kind} ${same(part) ? "most" : ""}`}
        style=${{ width: `${(100 * part.seconds) / whole}%` }}
        title=${`${part.kind}: ${textOf(part)}`}
        >${part.kind === "wait" ? "‖" : "▸"} ${textOf(part)}</span
      >`,
  )}</div>`;
}

function Delay({ delay, staleness, refused }) {
  if (refused)
    return html`<div class="note">Its delay is not known: it has no
      ${" "}<${Word} of="barrier">barriers<//>. A table has them as the base table of a group, or
      where one job that carries barriers writes it.</div>`;
  const now = html`<h2>Now</h2>
    <p>${nowOf(staleness)}</p>`;
  if (!delay)
    return html`<div class="note">Its delay is not known: it has completed no
        ${" "}<${Word} of="barrier">barrier<//>, or the time of its last one is not stored any
        more.</div>${now}`;
  return html`<p
    class="sentence"><${Word} of="barrier">Barrier<//> ${delay.barrier} took
    ${" "}${duration(delay.seconds)} from the base table to
    this table${
      delay.bottleneck
        ? html`; ${
            delay.bottleneck.job
              ? html`<${JobLink} of=${delay.bottleneck.job} />`
              : delay.bottleneck.table.label
          } ${
            delay.bottleneck.kind === "wait" ? "waited" : "worked"
          } ${duration(delay.bottleneck.seconds)} of it`
        : ""
    }.</p>
    <div class="panel pad"><${Parts} delay=${delay} /></div><div class="legend">
    <span>‖ waited although its inputs were ready</span><span>▸ worked</span></div>
    ${now}`;
}

function nowOf({ barrier, seconds, localSeconds }) {
  if (seconds <= 0) return "It shows every barrier.";
  const inputs =
    localSeconds > 0
      ? `the inputs have been ready for ${duration(localSeconds)}`
      : "its inputs are not ready yet";
  return `Barrier ${barrier} has been missing for ${duration(seconds)}; ${inputs}.`;
}

function Expiry({ one }) {
  const found = useData(
    async (signal) => {
      const [answer, known] = await Promise.all([
        get("/expirable", { ...one, limit: 200 }, signal),
        list("/datasets/snapshots", one, 1000, signal),
      ]);
      return { ...answer, known: new Map(known.items.map((snap) => [snap.snapshotId, snap])) };
    },
    [one.namespace, one.name],
  );
  return html`<${Loaded} of=${found}>${(answer) => {
    const { expirable, expirableCount, kept, keptCount } = answer;
    const cells = (id) => {
      const { barrierId, committedAt } = answer.known.get(id) || {};
      return [
        { show: html`<${Id} id=${id} whole />`, text: id },
        barrierId ?? "",
        { show: html`<${Time} at=${committedAt} />`, text: committedAt || "" },
      ];
    };
    const texts = kept.map((row) => row.reasons.join("; "));
    const reasons = (text, i) =>
      text === texts[i - 1] ? { show: html`<span class="dim">as above</span>`, text } : text;
    const head = ["snapshot", "barrier", "committed"];
    const cut = (shown, all) => all > shown && html`<p class="dim">${shown} of ${all} shown</p>`;
    return html`<p class="sentence">
        ${
          expirableCount
            ? `${count(expirableCount, "snapshot")} may be expired`
            : "Nothing may be expired"
        };
        ${" "}${keptCount} stay${keptCount === 1 ? "s" : ""}.</p>
      ${
        expirable.length > 0 &&
        html`<h2>May be expired</h2>
          <${Grid} name="expirable" head=${head} rows=${expirable.map(cells)} />
          ${cut(expirable.length, expirableCount)}`
      }
      <h2>What stays, and for whom</h2>
      <${Grid}
        name="kept"
        head=${[...head, "reasons"]}
        rows=${kept.map((row, i) => [...cells(row.snapshotId), reasons(texts[i], i)])}
      />${cut(kept.length, keptCount)}`;
  }}<//>`;
}
