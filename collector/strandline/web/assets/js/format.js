// Names, ids and times as people read them.
/** @type {[number, string][]} */
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10 && seconds % 1) return `${seconds.toFixed(1)} s`;
  const [size, unit] = UNITS.find(([size]) => seconds >= 2 * size) || [1, "s"];
  return `${Math.round(seconds / size)} ${unit}`;
}

const millis = (moment) => (typeof moment === "number" ? moment * 1000 : Date.parse(moment));

export function ago(moment) {
  if (moment === null || moment === undefined) return "";
  const seconds = (Date.now() - millis(moment)) / 1000;
  return seconds < -60
    ? `in ${duration(-seconds)}`
    : `${duration(Math.max(0, Math.round(seconds)))} ago`;
}

export function absolute(moment) {
  if (moment === null || moment === undefined) return "";
  const at = new Date(millis(moment));
  const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" })
    .formatToParts(at)
    .find((p) => p.type === "timeZoneName");
  const two = (n) => String(n).padStart(2, "0");
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  return `${day} ${time} ${zone ? zone.value : ""}`;
}

// A table as Spark calls it; an address is no catalog's name, and what is in no database keeps its
// own name.
export function tableName(one) {
  if (!one.database) return one.label || one.name || one.table;
  const isAddress = one.catalog === one.namespace || /[:/]/.test(one.catalog);
  return [isAddress ? "" : one.catalog, one.database, one.table].filter(Boolean).join(".");
}

export const shortId = (id) =>
  id && id.length > 13 ? `${id.slice(0, 6)}…${id.slice(-5)}` : id || "";

export const nodeId = (type, one) => `${type}:${one.namespace}:${one.name}`;

export const STATES = {
  START: ["run", "starting", "●"],
  RUNNING: ["run", "running", "●"],
  COMPLETE: ["ok", "complete", "✓"],
  FAIL: ["bad", "failed", "✕"],
  ABORT: ["warn", "stopped", "■"],
  LOST: ["warn", "lost", "?"],
  NONE: ["", "not run", ""],
};

const JAVA_PACKAGE = /^(?:[a-z]\w*\.)+(?=[A-Z])/; // before the name of an exception
export const withoutPackage = (error) => error.replace(JAVA_PACKAGE, "");

const RULES = {
  allSources: "every input × every output",
  columnLineage: "column lineage",
  lineage: "a lineage facet",
  view: "the view's query",
};
// How an edge is known, in words.
export const ruleName = (rule) => RULES[rule] || rule || "";

export const number = (n) => n.toLocaleString("en-US");

export const count = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
// How many items of a list are shown, of how many.
export function listed({ items, more, total }, noun) {
  if (!more) return count(items.length, noun);
  return total
    ? `First ${number(items.length)} of ${count(total, noun)}`
    : `First ${count(items.length, noun)}; more match`;
}
