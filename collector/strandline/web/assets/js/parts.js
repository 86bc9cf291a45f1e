// Small parts that every screen uses.
import { h, Fragment } from "preact";
import { useState } from "preact/hooks";
import htm from "htm";
import { absolute, ago, count, nodeId, number, shortId, STATES, tableName } from "./format.js";
import { address } from "./api.js";

export const html = htm.bind(h);
export { Fragment };

let say = (/** @type {string} */ _) => {};
export const onToast = (listener) => {
  say = listener;
};
export async function copy(text, what = "copied") {
  try {
    await navigator.clipboard.writeText(text);
    say(what);
  } catch {
    say("the browser does not allow copying here");
  }
}
export function save(name, content, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 5000);
}
const cell = (value) => {
  const text = String(value ?? "");
  // a spreadsheet must not take a name for a formula
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};
export const csv = (rows) => rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

// A value that is not there; on a narrow screen it takes no room.
export const None = ({ why }) => html`<span class="dim none" title=${why}>–</span>`;
export const Time = ({ at }) =>
  at === null || at === undefined
    ? html`<${None} />`
    : html`<time title=${absolute(at)} class="nowrap">${ago(at)}</time>`;
export const Id = ({ id, whole }) =>
  html`<button class=${`id ${whole ? "" : "nowrap"}`} title=${`${id}: click copies it`}
    onClick=${() => copy(id, `copied ${id}`)}>${whole ? id : shortId(id)}</button>`;
export function State({ state }) {
  const [kind, word, sign] = STATES[state] || ["", (state || "unknown").toLowerCase(), ""];
  return html`<span class=${`chip ${kind}`}>
    ${kind === "run" ? html`<span class="dot"></span>` : sign} ${word}</span>`;
}
export const linkOf = (kind, one) =>
  kind === "run"
    ? address("/run", { id: one.name, namespace: one.namespace, name: one.text })
    : kind === "job"
      ? address("/job", { namespace: one.namespace, name: one.name })
      : address("/table", {
          namespace: one.namespace,
          name: one.name,
          snapshot: one.matched === "snapshot" ? one.text : null,
        });
export const graphOf = (kind, one, more = {}) =>
  address("/graph", { node: nodeId(kind, one), ...more });
export const TableLink = ({ of }) =>
  html`<a href=${linkOf("dataset", of)} title=${`${of.namespace} ${of.name}`}>${tableName(of)}</a>`;
// A long name breaks after its dots, slashes and underscores, not between any two letters.
export const Name = ({ text }) =>
  text.split(/(?<=[._/])/).map((part, i) => (i ? html`<wbr />${part}` : part));
// A word of the glossary; `wordHead`: as the head of a column.
export const Word = ({ of, children }) =>
  html`<a class="word" href=${`/words#${of}`}>${children}</a>`;
export const wordHead = (of, text) => ({ show: html`<${Word} of=${of}>${text}<//>`, text });
// Below its application a job's name is shown without the application's.
export const nameBelow = (name, above) =>
  above !== null && name.startsWith(`${above}.`) ? name.slice(above.length + 1) : name;
export function JobLink({ of, below = null }) {
  const text = nameBelow(of.name, below);
  return html`<a href=${linkOf("job", of)} title=${
    text === of.name ? of.namespace : `${of.namespace} ${of.name}`
  }
    ><${Name} text=${text} /></a>`;
}
// A text of the API, its commands and settings set as code.
const CODE = /(\bstrandline (?:retire|rollback|replay) [^;,)]+|\bspark\.[\w.]+\w)/;
export const Said = ({ text }) =>
  text.split(CODE).map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));
// Why a version does not advance; the job that it begins with is a link.
export function Reason({ of: { reason, job } }) {
  if (!job || !reason.startsWith(`${job.name}: `)) return html`<${Said} text=${reason} />`;
  return html`<${JobLink} of=${job} /><${Said} text=${reason.slice(job.name.length)} />`;
}
// "job:NAMESPACE:NAME" as a link: the API resolves the whole, so it is not taken apart here.
export function NodeLink({ node, label }) {
  const kind = node.split(":", 1)[0];
  return html`<a href=${address(kind === "job" ? "/job" : "/table", { node })}>
    <${Name} text=${label || node.slice(kind.length + 1)} /></a>`;
}
// What may have been meant, as the API names it: a node, a group, or the name of a table or job.
function Candidate({ text }) {
  const kind = text.split(":", 1)[0];
  if (["dataset", "job"].includes(kind)) return html`<${NodeLink} node=${text} />`;
  const name = kind === "group" ? text.slice("group:".length) : text;
  const link = kind === "group" ? address("/group", { name }) : address("/table", { node: name });
  return html`<a href=${link}><${Name} text=${name} /></a>`;
}

export function Problem({ error, again }) {
  const { problem = {} } = error;
  const candidates = problem.candidates || [];
  return html`<div class="error" role="alert"><strong>${error.message}</strong>
    ${
      candidates.length > 0 &&
      html`<p>Did you mean ${candidates
        .slice(0, 8)
        .map((text, i) => html`${i ? ", " : ""}<${Candidate} text=${text} />`)}?</p>`
    }
    ${
      error.status === 404 &&
      !candidates.length &&
      html`<p>The search finds names by a part, and ids by their first six characters.</p>`
    }${
      error.status === undefined &&
      html`<p>The collector cannot be reached from here. <button
        onClick=${again}>Try again</button></p>`
    }</div>`;
}
// What a screen shows while data is loaded, when there is none, and when there is some.
// `title`: the heading of the whole screen where the data would have named it.
export function Loaded({ of, title = "", children }) {
  if (of.data)
    return html`${
      of.error && html`<${Problem} error=${of.error} again=${of.reload} />`
    }${children(of.data)}`;
  if (of.error)
    return html`${title && html`<h1>${title}</h1>`}<${Problem}
        error=${of.error}
        again=${of.reload}
      />`;
  return html`<div class="skeleton" role="status" aria-label="loading"></div>`;
}
// The tab that the address names, or the first.
export const tabOf = (tabs, params) =>
  tabs.some(([key]) => key === params.get("tab")) ? params.get("tab") : tabs[0][0];
export function Tabs({ of, now, link }) {
  return html`<div class="tabs" role="navigation" aria-label="parts of this page">${of.map(
    ([key, label]) => html`
    <a href=${link(key)} aria-current=${key === now ? "page" : undefined}>${label}</a>`,
  )}</div>`;
}
const FEW = 5;
// A list as rows of a tree: each item below the one that it belongs to, but for one that is above
// itself. More than FEW items below one are folded until they are opened. `most`: items on top.
export function useTree(items, keyOf, parentOf, most = Infinity) {
  const [opened, open] = useState([]);
  const byKey = new Map(items.map((one) => [keyOf(one), one]));
  const below = new Map();
  const top = [];
  const isAboveItself = (one) => {
    const passed = new Set();
    let key = keyOf(one);
    while (byKey.has(key) && !passed.has(key)) {
      passed.add(key);
      key = parentOf(byKey.get(key), byKey);
    }
    return key === keyOf(one);
  };
  for (const one of items) {
    const parent = parentOf(one, byKey);
    if (!byKey.has(parent) || isAboveItself(one)) top.push(one);
    else below.set(parent, [...(below.get(parent) || []), one]);
  }
  const rowsOf = (one, parent) => {
    const key = keyOf(one);
    const children = below.get(key) || [];
    const canFold = children.length > FEW;
    const isOpen = !canFold || opened.includes(key);
    const toggle = () => open(isOpen ? opened.filter((other) => other !== key) : [...opened, key]);
    const row = { one, parent, below: allBelow(one), isOpen, toggle: canFold ? toggle : null };
    return [row, ...(isOpen ? children.flatMap((child) => rowsOf(child, one)) : [])];
  };
  const allBelow = (one) =>
    (below.get(keyOf(one)) || []).flatMap((child) => [child, ...allBelow(child)]);
  return top.slice(0, most).flatMap((one) => rowsOf(one, null));
}
// The button that opens and closes what is below a row of a tree; failures are told either way.
// `isCut`: the list ends before all that is below may have come.
export function Below({ row, noun, stateOf, isCut }) {
  if (!row.toggle) return null;
  const failed = row.below.filter((one) => stateOf(one) === "FAIL").length;
  return html`<button class="icon small" aria-expanded=${row.isOpen} onClick=${row.toggle}
    >${row.isOpen ? "▾" : "▸"} ${isCut ? "at least " : ""}${count(row.below.length, noun)} below
    it${failed ? `, ${failed} failed` : ""}</button>`;
}

// a number or a word: never broken in two
const isShort = (one) => typeof one !== "object" && String(one).length <= 16;
// A cell or a head is a value, or {show, text} where what is shown is more than its text.
const hasText = (one) => one?.text !== undefined;
const textOf = (one) => (hasText(one) ? one.text : one);
const showOf = (one) => (hasText(one) ? one.show : one);
// `all`: rows for the CSV where not all are shown; without a name there is no CSV. `most`: how many
// rows are shown at once.
export function Grid({ head, rows, empty, name = null, all = rows, most = Infinity }) {
  const [shown, show] = useState(most);
  if (!rows.length) return html`<div class="note">${empty || "Nothing here."}</div>`;
  const saved = () => [head, ...all].map((row) => row.map(textOf));
  return html`<div class="panel scroll"><table class="grid"><thead><tr>
    ${head.map((one) => html`<th scope="col">${showOf(one)}</th>`)}</tr></thead>
    <tbody>${rows.slice(0, shown).map(
      (row) => html`<tr>
    ${row.map(
      (one, i) =>
        html`<td data-label=${textOf(head[i])} class=${isShort(one) ? "nowrap" : undefined}>
          ${showOf(one)}</td>`,
    )}</tr>`,
    )}</tbody></table></div>
    ${
      rows.length > shown &&
      html`<p class="row below"><span class="dim">${number(shown)} of ${number(rows.length)} rows</span>
        <button onClick=${() => show(shown + most)}>Show more</button></p>`
    }
    ${
      name &&
      html`<p class="right small">
    <button class="icon" onClick=${() =>
      save(`${name}.csv`, csv(saved()), "text/csv")}>CSV</button></p>`
    }`;
}
// What a list says where a filter leaves nothing.
export const NoMatch = ({ of, all }) => html`No ${of} match. <a href=${all}>Show all ${of}</a>.`;
// What a list says before the first event.
export const NoneYet = ({ of }) =>
  html`No ${of} yet: they appear with their first event. <a href="/">How to send it</a>.`;
const KEYWORDS = [
  "select from where insert into overwrite table create or replace as join left right full",
  "outer inner cross on using group by order having union all merge when matched then update",
  "set delete values with and not null is in exists case else end distinct over partition limit",
  "version of timestamp call",
].join(" ");
const SQL_PARTS = [
  /(--[^\n]*|\/\*[\s\S]*?\*\/)/, // a comment
  /('(?:[^']|'')*')/, // a text
  /\b(\d+(?:\.\d+)?)\b/, // a number
  new RegExp(`\\b(${KEYWORDS.replaceAll(" ", "|")})\\b`),
];
const WORDS = new RegExp(SQL_PARTS.map((part) => part.source).join("|"), "gi");
export function Sql({ text }) {
  const found = [];
  let last = 0;
  for (const match of text.matchAll(WORDS)) {
    found.push(text.slice(last, match.index));
    const kind = match[1] ? "c" : match[2] ? "s" : match[3] ? "n" : "k";
    found.push(html`<span class=${`sql-${kind}`}>${match[0]}</span>`);
    last = match.index + match[0].length;
  }
  found.push(text.slice(last));
  return html`<div class="sqlbox"><pre tabindex="0"><code>${found}</code></pre>
    <button class="icon small" onClick=${() => copy(text)}>copy</button></div>`;
}
const shown = (value) =>
  value === null || typeof value !== "object" ? String(value) : JSON.stringify(value, null, 1);
export function Facets({ facets, quarantined }) {
  const names = Object.keys(facets || {}).sort();
  if (!names.length) return html`<div class="note">No facets.</div>`;
  return html`${
    Object.keys(quarantined || {}).length > 0 &&
    html`<div class="note">Set aside because they do not follow their
      schema: ${Object.keys(quarantined).join(", ")}</div>`
  }
    ${names.map(
      (name) => html`<h2>${name}</h2><div class="panel scroll"><table><tbody>
      ${Object.entries(facets[name] || {})
        .filter(([key]) => !key.startsWith("_"))
        .map(
          ([key, value]) => html`<tr><th scope="row" class="nowrap">${key}</th>
        <td>${
          key === "query" || key === "sourceCode"
            ? html`<${Sql} text=${String(value)} />`
            : typeof value === "object" || String(value).length > 120
              ? html`<pre tabindex="0">${shown(value)}</pre>`
              : shown(value)
        }</td></tr>`,
        )}
    </tbody></table></div>`,
    )}`;
}
export function Confirm({ label, question, act }) {
  const [asked, ask] = useState(false);
  const [said, tell] = useState("");
  if (said) return html`<span class="dim">${said}</span>`;
  if (!asked) return html`<button onClick=${() => ask(true)}>${label}</button>`;
  return html`<span class="row">${question} <button class="primary" onClick=${() =>
    act().then(
      () => tell("done"),
      (error) => tell(error.message),
    )}>Yes</button><button onClick=${() => ask(false)}>No</button></span>`;
}
