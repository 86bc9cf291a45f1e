// The consistency board of a group, and rollback plans as steps.
import { useState } from "preact/hooks";
import { address, get, post } from "../api.js";
import { ago, count, duration } from "../format.js";
import {
  Grid,
  html,
  Id,
  JobLink,
  Loaded,
  Problem,
  Reason,
  Said,
  Sql,
  State,
  TableLink,
  Time,
  Word,
} from "../parts.js";
import { go, useData, useTitle, withParams } from "../state.js";
import { Parts } from "./table.js";

export function Groups() {
  const found = useData((signal) => get("/overview", {}, signal), []);
  return html`<h1>Consistency</h1><${Loaded} of=${found}>${({ groups }) => html`<p class="sentence">
    ${
      groups.length
        ? html`${groups.length} <${Word}
            of="group">${groups.length === 1 ? "group" : "groups"}<//>: <${Word}
            of="base-table">base tables<//> whose snapshots are taken together.`
        : "No table carries barriers yet."
    }</p>
    ${
      groups.length === 0 &&
      html`<div class="note">A job takes part with <code>spark.strandline.group</code> in its
        conf. <a href="/compare">Compare tables</a> works without.</div>`
    }
    ${groups.map(
      (one) => html`<h2><a href=${address("/group", { name: one.name })}>
    ${one.name}</a></h2><${Board} name=${one.name} columns=${12} small />`,
    )}`}<//><p class="below">
    <a class="button" href="/compare">Do these tables agree?</a></p>`;
}

// As many barriers as fit beside the names, the versions and the reasons: what blocks the group is
// in view.
const fitting = () => Math.max(6, Math.min(20, Math.floor((innerWidth - 700) / 34)));

export function Group({ params }) {
  const name = params.get("name");
  useTitle(name && `Group ${name}`);
  if (!name) return html`<${Groups} />`;
  return html`<h1>${name}</h1>
    <${Board} name=${name} columns=${
      Number(params.get("columns")) || fitting()
    } upTo=${params.get("upTo")} params=${params} />`;
}

function Board({ name, columns, upTo, params, small }) {
  const found = useData(
    (signal) => get("/groups/board", { group: name, columns, upTo }, signal),
    [name, columns, upTo],
  );
  return html`<${Loaded} of=${found}>
    ${(board) => html`<${Drawn} board=${board} params=${params} small=${small} />`}<//>`;
}

const MARKS = {
  done: ["done", html`<circle cx="8" cy="8" r="5" fill="currentColor" />`],
  skipped: [
    "skipped",
    html`<path d="M4 4L12 12M12 4L4 12" stroke="currentColor" stroke-width="2" />`,
  ],
  missing: ["missing", html`<circle cx="8" cy="8" r="1.6" fill="currentColor" opacity=".7" />`],
};

function Drawn({ board, params, small }) {
  const strong = Math.min(...board.tables.map((one) => one.strong ?? Infinity));
  const holders = new Map(
    board.blockedBy.map((one) => [`${one.table.namespace} ${one.table.name}`, one]),
  );
  const picked = params?.get("cell") || "";
  const [table, barrier] = [picked.slice(0, picked.lastIndexOf("~")), picked.split("~").at(-1)];
  const chosen = params && board.tables.find((one) => one.name === table);
  const cell = chosen?.cells[board.barriers.indexOf(Number(barrier))];
  const pick = (one, b) => params && go(withParams({ cell: `${one.name}~${b}` }), true);
  return html`<p class="sentence">${sentence(board, strong)}</p>${!small && html`<${About} />`}
    <div class="panel scroll"><table class="board"><thead><tr><th class="name">
    <span class="dim small">${hiddenOf(board) || "table"}</span></th>
    ${board.barriers.map(
      (b) => html`<th scope="col" class=${`num ${b === strong ? "strong" : ""}`}>
    ${b}</th>${
      b === board.gapAfter && html`<th class="gap" title="barriers between are left out">…</th>`
    }`,
    )}<th class="num wide"
      title="the newest barrier that all tables of the group have (strong)"
      ><${Word} of="pipeline">pipeline<//></th>
      <th class="num wide"
        title="the newest barrier that this table has (weak)"
        ><${Word} of="weak">latest<//></th></tr></thead>
      <tbody>${board.tables.map(
        (one) => html`<tr><th scope="row" class="name"><${TableLink} of=${one} /><small>
          <${Why} one=${one} holder=${holders.get(`${one.namespace} ${one.name}`)} /></small></th>
        ${one.cells.map((c, i) => {
          const b = board.barriers[i];
          const [word, mark] = MARKS[c.state];
          return html`<td class=${`cell ${b === strong ? "strong" : ""} ${c.state}`}>
            <button class="cellmark" aria-pressed=${
              one.name === table && String(b) === barrier
            } aria-label=${`${one.label} barrier ${b}: ${word}`}
              title=${`barrier ${b}: ${word}${c.committedAt ? `, ${ago(c.committedAt)}` : ""}`}
                onClick=${() => pick(one, b)}>
                <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
                ${mark}</svg></button></td>${b === board.gapAfter && html`<td class="gap"></td>`}`;
        })}
        <td class="num wide">${one.strong ?? "–"}</td>
        <td class="num wide" title=${
          one.latestSnapshotId ? `latest snapshot ${one.latestSnapshotId}` : undefined
        }>${one.weak ?? "–"}</td></tr>`,
      )}</tbody></table>
      <div class="legend"><span>● computed from this state of the base tables</span>
      <span>✕ <${Word} of="skipped">skipped<//></span><span>· missing</span>
      <span>framed: newest consistent version</span></div></div>
    ${cell && html`<${Cell} one=${chosen} cell=${cell} barrier=${barrier} />`}
    ${
      !small &&
      html`<${EndToEnd} board=${board} strong=${strong} />
    <${Rollback} board=${board} params=${params} /><${Earlier} board=${board} />`
    }`;
}

const hiddenOf = ({ hiddenParts }) => {
  const parts = Object.entries(hiddenParts)
    .filter(([, n]) => n)
    .map(([where, n]) => `${n} ${where}`);
  return parts.length && `${parts.join(", ")} hidden`;
};

const About = () =>
  html`<p class="dim">Each column is one state of the base tables, numbered by its <${Word}
    of="barrier">barrier<//>. A dot says that a table has a snapshot computed from exactly that
    state; tables read at one barrier agree.</p>`;

function sentence(board, strong) {
  const holder = board.blockedBy[0];
  const age =
    Number.isFinite(strong) && board.births[strong]
      ? ` (created ${ago(board.births[strong])})`
      : "";
  const base = Number.isFinite(strong)
    ? html`Newest consistent version: <strong class="mono">${strong}</strong>${age}`
    : "No consistent version yet: no barrier is completed by all tables";
  if (!holder) return html`${base}. Nothing blocks it.`;
  return html`${base}. <${Word} of="blocked-by">Blocked by<//> <${Reason} of=${holder} />.`;
}

function Why({ one, holder }) {
  if (one.state === "untracked")
    return html`<span class="chip warn" title=${one.why}>untracked</span> <span class="dim small">
      <${Said} text=${one.why} /></span>`;
  if (holder)
    return html`<span class="chip warn">⊘ blocks</span> ${
      one.writer &&
      html`<${State} state=${one.writer.state} /> <span class="dim small">
        <${JobLink} of=${one.writer} />
        ${one.writer.endedAt ? html` since <${Time} at=${one.writer.endedAt} />` : ""}</span>`
    }`;
  return html`${
    one.state === "joining" &&
    html`<span class="chip aligned"
      title="its stream is no member of the group yet: the table answers alone">joining</span> `
  }${
    one.baseTable && html`<span class="chip"><${Word} of="base-table">base table<//></span> `
  }${one.writer && html`<${State} state=${one.writer.state} />`}${
    one.stalenessSeconds > 0 &&
    html` <span class="dim small">◷ ${duration(one.stalenessSeconds)} behind</span>`
  }`;
}

function Cell({ one, cell, barrier }) {
  if (cell.state !== "done")
    return html`<div class="note">
      ${one.label} ${
        cell.state === "skipped"
          ? `skipped barrier ${barrier}: it has no snapshot for it, and the next barrier that all
            tables have counts`
          : `has not completed barrier ${barrier} yet`
      }.</div>`;
  return html`<div class="panel pad below"><p><strong>
    ${one.label}</strong> at barrier ${barrier}: snapshot <${Id} id=${cell.snapshotId}
      whole />, committed <${Time} at=${cell.committedAt} />. <a href=${address("/table", {
        namespace: one.namespace,
        name: one.name,
        snapshot: cell.snapshotId,
      })}>what it was made from</a></p>
        <${Sql} text=${`SELECT * FROM ${one.label} VERSION AS OF ${cell.snapshotId}`} /></div>`;
}

function EndToEnd({ board, strong }) {
  const last = [...board.tables].reverse().find((one) => !one.baseTable && one.strong !== null);
  const found = useData(
    async (signal) =>
      last
        ? get(
            "/delays",
            {
              namespace: last.namespace,
              name: last.name,
              barrier: Number.isFinite(strong) ? strong : null,
            },
            signal,
          ).catch(() => null)
        : null,
    [last?.name, strong],
  );
  const delay = found.data?.delay;
  if (!delay) return null;
  return html`<h2>End to end: from the base table to ${last.label} at
    barrier ${delay.barrier}, ${duration(delay.seconds)}</h2><div class="panel pad">
    <${Parts} delay=${delay} />${
      delay.bottleneck &&
      html`<p class="dim">The largest part: ${
        delay.bottleneck.job?.name || delay.bottleneck.table.label
      } ${
        delay.bottleneck.kind === "wait" ? "waited" : "worked"
      } ${duration(delay.bottleneck.seconds)} of ${duration(delay.seconds)}.</p>`
    }</div>`;
}

function Rollback({ board, params }) {
  const wanted = params?.get("rollback");
  const [table, setTable] = useState(() =>
    Math.max(
      0,
      board.tables.findIndex((one) => wanted && wanted.endsWith(`:${one.name}`)),
    ),
  );
  const [barrier, setBarrier] = useState(board.barriers[0] ?? 1);
  const [plan, setPlan] = useState(null),
    [error, setError] = useState(null);
  const ask = (event) => {
    event.preventDefault();
    const one = board.tables[table];
    post("/rollbacks", { namespace: one.namespace, name: one.name, barrier: Number(barrier) }).then(
      (found) => {
        setPlan(found);
        setError(null);
      },
      setError,
    );
  };
  const about = (step) =>
    Object.entries(step)
      .filter(
        ([key, value]) =>
          !["action", "target", "before", "after"].includes(key) && value !== null && value !== "",
      )
      .map(([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : value}`)
      .join("\n");
  return html`<details open=${Boolean(wanted)}><summary>Plan a rollback</summary>
    <form class="row" onSubmit=${ask}>
    <label>table <select value=${table} onChange=${(e) => setTable(Number(e.target.value))}>
    ${board.tables.map((one, i) => html`<option value=${i}>${one.label}</option>`)}</select></label>
    <label>back to barrier <input type="number" min="0" value=${barrier}
      onInput=${(e) => setBarrier(e.target.value)} /></label>
      <button class="primary">Show the plan</button>
      <span class="dim small">Nothing is changed by looking.</span></form>
    ${error && html`<${Problem} error=${error} />`}${
      plan &&
      !error &&
      html`<p class="sentence">
        ${plan.kind === "full" ? "A full plan" : "An incremental plan"} ${
          plan.barrier ? `to barrier ${plan.barrier}` : ""
        }: ${count(plan.tables.length, "table")}, ${count(plan.jobs.length, "job")}. ${plan.why}</p>
      <${Grid} name="rollback" head=${[
        "",
        "step",
        "target",
        "before",
        "after",
        "details",
      ]} rows=${plan.steps.map((step, i) => [
        i + 1,
        step.action,
        typeof step.target === "object" ? JSON.stringify(step.target) : step.target,
        step.before,
        step.after,
        { show: html`<span class="mono small">${about(step)}</span>`, text: about(step) },
      ])} />`
    }</details>`;
}

function Earlier({ board }) {
  if (!board.barriers.length) return null;
  const { older, between } = board.hiddenParts,
    // what a gap hides comes first
    next = between ? board.barriers[board.barriers.indexOf(board.gapAfter) + 1] : board.barriers[0];
  return html`<p class="row">
    ${
      older + between > 0 &&
      html`<a class="button" href=${withParams({ upTo: next - 1, cell: null })}>← earlier</a>`
    }${
      board.barriers.at(-1) < board.newest &&
      html`<a class="button" href=${withParams({ upTo: null, cell: null })}>newest →</a>`
    }</p>`;
}
