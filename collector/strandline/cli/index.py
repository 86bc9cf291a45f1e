"""Every command by name: the module that holds it, and what it is for.

`strandline --help` reads this table alone, and `strandline NAME` imports the one module of that
command: the libraries of all commands together took a second.
"""

from collections.abc import Mapping
from typing import NamedTuple


class ListedCommand(NamedTuple):
    """The place of a command in this package, and its line in the help."""

    module: str
    about: str


COMMANDS: Mapping[str, ListedCommand] = {
    "archive": ListedCommand(
        "archive",
        "move events out of the store, or straight from the topic, into a table for Spark",
    ),
    "backup": ListedCommand("backup", "a checked copy of the whole store, while servers write"),
    "catalog-options": ListedCommand(
        "catalog_options", "what catalogs show of lineage, listed or set"
    ),
    "changes": ListedCommand("questions", "what came and went in the graph between two moments"),
    "check": ListedCommand("check", "look for faults in settings, database and topic"),
    "consume": ListedCommand(
        "serve", "take records from Kafka only; run as many as the topic has partitions"
    ),
    "datasets": ListedCommand(
        "lists", "the datasets, each with its latest write; by state, time and namespace"
    ),
    "demo": ListedCommand(
        "demo", "five Spark jobs, Kafka and a collector on this machine; then what was seen"
    ),
    "events": ListedCommand("events", "the events as received; by job, run, dataset and time"),
    "expire": ListedCommand("expire", "which snapshots nobody needs any more, and why others stay"),
    "export": ListedCommand("export", "send all that is known to a catalog, or into a file"),
    "exports": ListedCommand("exports", "how far each target of exports is, and what it refused"),
    "forget": ListedCommand(
        "forget",
        "take a job, dataset, run, namespace, event or secret out of the store; without --execute only count",
    ),
    "impact": ListedCommand(
        "questions", "what breaks if a table or a column goes; exit code 1 if anything does"
    ),
    "import": ListedCommand(
        "import_from", "take over what a Marquez, or a file of DataHub's metadata, holds"
    ),
    "jobs": ListedCommand(
        "lists", "the jobs, each with its latest run; by state, time and namespace"
    ),
    "keys": ListedCommand("keys", "make, list and revoke API keys"),
    "late": ListedCommand("late", "how far a table is behind, and why"),
    "lineage": ListedCommand(
        "lineage", "what a table or job is made from, and what is made from it"
    ),
    "migrate": ListedCommand("migrate", "bring the database to the schema of this version"),
    "names": ListedCommand(
        "names", "which names are one dataset; without --apply only what would change"
    ),
    "namespaces": ListedCommand(
        "questions", "the namespaces, and how many jobs feed one from another"
    ),
    "paths": ListedCommand("questions", "the ways from one table or job to another"),
    "rebuild": ListedCommand(
        "rebuild", "make the lineage tables anew from archived events, on Spark"
    ),
    "rejected": ListedCommand("rejected", "what was sent and not taken, by producer and reason"),
    "replay": ListedCommand("replay", "take events from files, archives or dead letters again"),
    "report": ListedCommand(
        "report", "a report about the whole graph, as Spark SQL over the published tables"
    ),
    "restore": ListedCommand("backup", "make the store of a copy, where none is yet"),
    "retention": ListedCommand(
        "retention",
        "drop what is older than STRANDLINE_RETENTION_DAYS; without --execute only count",
    ),
    "retire": ListedCommand("retire", "retire a stopped job, so that it blocks no version"),
    "rollback": ListedCommand(
        "rollback", "the steps that take a table and what is made from it back"
    ),
    "runs": ListedCommand(
        "lists", "the runs, and why they failed; by job, state, time and namespace"
    ),
    "search": ListedCommand(
        "lists", "datasets, jobs and runs by a part of a name, a tag, a column or an SQL text"
    ),
    "serve": ListedCommand("serve", "serve the API and, where Kafka is set, take its records"),
    "snapshots": ListedCommand(
        "snapshots", "the snapshots of a table that are known, the newest first"
    ),
    "tables": ListedCommand(
        "tables", "publish the lineage tables as real tables of an Iceberg catalog"
    ),
    "versions": ListedCommand("versions", "which snapshots of tables belong together"),
}
