// The words that the page uses, each in one sentence.
import { html } from "../parts.js";

const WORDS = [
  ["Dataset, table", "A dataset is what a job reads or writes; a table is one with snapshots."],
  ["Snapshot", "An immutable state of a table. Its id is exact, or only observed from outside."],
  ["Job, run", "A job is a program by name; a run is one execution of it."],
  ["Lost", "A run that sent no event for longer than its heartbeat timeout."],
  ["Recent lineage", "The edges of a job's last runs; “latest”: of its latest run alone."],
  ["Group", "Base tables whose snapshots are taken together, and all that is computed from them."],
  ["Base table", "A table of a group that no job of the group computes."],
  ["Barrier", "A numbered state of all base tables of a group."],
  ["Pipeline (strong)", "The newest barrier that all tables which depend on each other have."],
  ["These tables (weak)", "The newest barrier that all tables of one question completed."],
  ["Cut", "Without barriers: the newest snapshots that no recorded lineage contradicts."],
  ["Skipped", "A barrier that a table passed without a snapshot for it."],
  ["Blocked by", "The job that keeps a version from advancing."],
  ["Lag", "The age of the first barrier that a table lacks."],
  ["Delay", "The time of one barrier from the base tables to a table."],
  ["Expirable", "A snapshot that no version, reader or job needs, and none older either."],
  ["Retire", "Stop waiting for a job that will not return."],
  ["Rejected event", "An event that was not accepted, counted by producer and reason."],
];

export const Words = () => html`<h1>Words</h1>
  <dl class="words panel pad">${WORDS.map(
    ([word, about]) => html`<dt>${word}</dt><dd>${about}</dd>`,
  )}</dl>`;
