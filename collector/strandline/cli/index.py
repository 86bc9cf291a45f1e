"""Every command by name: the module that holds it, and what it is for.

`strandline --help` reads this table alone, and `strandline NAME` imports the one module of that command: the libraries
of all commands together took a second.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """Where a command lives in this package, and the line that the help shows for it."""

    module: str
    about: str


COMMANDS: Mapping[str, Entry] = {
    "analyse": Entry(
        "analyse", "what depends on what, what nobody uses, what comes late: over the whole store, on Spark"
    ),
    "archive": Entry("archive", "move events out of the store, or straight from the topic, into a table for Spark"),
    "backup": Entry("backup", "a checked copy of the whole store, while servers write"),
    "catalog-options": Entry("catalog_options", "what catalogs show of lineage, listed or set"),
    "changes": Entry("questions", "what came and went in the graph between two moments"),
    "check": Entry("check", "look for faults in settings, database and topic"),
    "consume": Entry("serve", "take records from Kafka only; run as many as the topic has partitions"),
    "datasets": Entry("lists", "the datasets, each with its newest write; by state, time and namespace"),
    "demo": Entry("demo", "five Spark jobs, Kafka and a collector on this machine; then what was seen"),
    "events": Entry("events", "the events as received; by job, run, dataset and time"),
    "expire": Entry("expire", "which snapshots nobody needs any more, and why others stay"),
    "export": Entry("export", "send all that is known to a catalog, or into a file"),
    "exports": Entry("exports", "how far each target of exports is, and what it refused"),
    "forget": Entry(
        "forget", "take a job, dataset, run, namespace, event or secret out of the store; without --execute only count"
    ),
    "impact": Entry("questions", "what breaks if a table or a column goes; exit code 1 if anything does"),
    "import": Entry("import_from", "take over what a Marquez, or a file of DataHub's metadata, holds"),
    "jobs": Entry("lists", "the jobs, each with its newest run; by state, time and namespace"),
    "keys": Entry("keys", "make, list and revoke API keys"),
    "late": Entry("late", "how far a table is behind, and why"),
    "lineage": Entry("lineage", "what a table or job is made from, and what is made from it"),
    "migrate": Entry("migrate", "bring the database to the schema of this version"),
    "names": Entry("names", "which names are one dataset; without --apply only what would change"),
    "namespaces": Entry("questions", "the namespaces, and how many jobs feed one from another"),
    "paths": Entry("questions", "the ways from one table or job to another"),
    "rebuild": Entry("rebuild", "make the lineage tables anew from archived events, on Spark"),
    "refused": Entry("refused", "what was sent and not taken, by producer and reason"),
    "replay": Entry("replay", "take events from files, or dead letters, again"),
    "restore": Entry("backup", "make the store of a copy, where none is yet"),
    "retire": Entry("retire", "let a stopped job give up its place"),
    "rollback": Entry("rollback", "the steps that take a table and what is made from it back"),
    "runs": Entry("lists", "the runs, and why they failed; by job, state, time and namespace"),
    "search": Entry("lists", "datasets, jobs and runs by a part of a name, a tag, a column or an SQL text"),
    "serve": Entry("serve", "serve the API and, where Kafka is set, take its records"),
    "versions": Entry("versions", "which snapshots of tables belong together"),
}
