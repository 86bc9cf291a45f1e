// The words that the page uses, each in one sentence; where they are used, they link to here.
import { useEffect } from "preact/hooks";
import { html } from "../parts.js";

const WORDS = [
  [
    "table",
    "Dataset, table",
    "A dataset is what a job reads or writes; a table is one with snapshots.",
  ],
  [
    "snapshot",
    "Snapshot",
    "An immutable state of a table. Its id is exact, or only observed from outside.",
  ],
  ["job", "Job, run", "A job is a program by name; a run is one execution of it."],
  ["lost", "Lost", "A run that sent no event for longer than its heartbeat timeout."],
  [
    "recent",
    "Recent lineage",
    "The edges of a job's last runs; “latest”: of its latest run alone.",
  ],
  [
    "group",
    "Group",
    "Base tables whose snapshots are taken together, and all that is computed from them.",
  ],
  ["base-table", "Base table", "A table of a group that no job of the group computes."],
  ["barrier", "Barrier", "A numbered state of all base tables of a group."],
  [
    "pipeline",
    "Pipeline (strong)",
    "The newest barrier that all tables which depend on each other have.",
  ],
  ["weak", "These tables (weak)", "The newest barrier that all tables of one question completed."],
  ["cut", "Cut", "Without barriers: the newest snapshots that no recorded lineage contradicts."],
  ["skipped", "Skipped", "A barrier that a table passed without a snapshot for it."],
  ["blocked-by", "Blocked by", "The job that keeps a version from advancing."],
  ["lag", "Lag", "The age of the first barrier that a table lacks."],
  ["delay", "Delay", "The time of one barrier from the base tables to a table."],
  [
    "expirable",
    "Expirable",
    "A snapshot that no version, reader or job needs, and none older either.",
  ],
  ["retire", "Retire", "Stop waiting for a job that will not return."],
  ["rejected", "Rejected event", "An event that was not accepted, counted by producer and reason."],
];

export function Words() {
  const here = location.hash.slice(1);
  useEffect(() => document.getElementById(here)?.scrollIntoView(), [here]);
  return html`<h1>Words</h1>
    <dl class="words panel pad">${WORDS.map(
      ([id, word, about]) =>
        html`<dt id=${id} class=${id === here ? "here" : ""}>${word}</dt><dd>${about}</dd>`,
    )}</dl>`;
}
