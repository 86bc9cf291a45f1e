"""A store whose changes are noted, a story of what is done to it, and what memory and database answer."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import cycle, product
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, select

from strandline.core.openlineage.times import micros_of
from strandline.core.walk import MOST_NODES, Direction
from strandline.runtime.job_memory import JobMemory, MemoryView
from strandline.store.forgetting.forget import Requester, forget
from strandline.store.forgetting.subjects import Subject
from strandline.store.ingest.following import follow_graph
from strandline.store.ingest.name_patterns import apply_alias
from strandline.store.ingest.retention import expire
from strandline.store.ingest.take import Record
from strandline.store.lineage.lookup import Node
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.questions.impact import Removal, impact_of
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import agree
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import columns, creates, dataset, parent, run
from worlds.scenarios.taking import fill

PLENTY = 64 * 1024 * 1024
NOW = datetime.now(UTC)
MOMENT = micros_of(NOW)
WAYS = tuple(product((Direction.BOTH, Direction.UPSTREAM, Direction.DOWNSTREAM), (None, 1)))


def follow(engine: Engine) -> None:
    with engine.begin() as connection:
        follow_graph(connection)


def nodes(connection: Connection) -> list[Node]:
    """Every node that can be asked for."""
    tables = select(datasets.c.id, datasets.c.namespace, datasets.c.name).where(
        datasets.c.id == datasets.c.canonical_id
    )
    found = [Node("dataset", *row) for row in connection.execute(tables)]
    return found + [
        Node("job", *row)
        for row in connection.execute(select(jobs.c.id, jobs.c.namespace, jobs.c.name))
    ]


def different(engine: Engine, memory: JobMemory, at: int = MOMENT) -> str:
    """Return the first question whose answer from memory is not the database's, or nothing.

    Each node is asked one way.
    """
    with reading(engine).connect() as connection:
        for node, (way, depth) in zip(nodes(connection), cycle(WAYS), strict=False):
            question = Question(node, View(at), way, depth)
            shared = memory.view(connection, question.view)
            kept = orjson.dumps(lineage_of(connection, question, shared))
            wanted = orjson.dumps(lineage_of(connection, question))
            if kept != wanted:
                both = difference(orjson.loads(kept), orjson.loads(wanted))
                return f"{node} {way} {depth}: {both}"
            removal = Removal(node, None, question.view, depth, MOST_NODES)
            if impact_of(connection, removal, shared) != impact_of(connection, removal):
                return f"impact of {node} {depth}"
    return ""


def difference(kept: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Return the entries of each of two answers that the other lacks."""

    def alone(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        listed = {
            name: [item for item in one[name] if item not in other[name]]
            for name in ("nodes", "edges")
        }
        return listed | {
            name: value
            for name, value in one.items()
            if name not in listed and value != other[name]
        }

    return f"{alone(kept, wanted)} is not {alone(wanted, kept)}"


def answered(
    connection: Connection, memory: JobMemory, name: str, at: int = MOMENT
) -> tuple[dict[str, Any], MemoryView]:
    """Return the lineage of a dataset, and the memory as the question saw it."""
    node = next(one for one in nodes(connection) if (one.kind, one.name) == ("dataset", name))
    shared = memory.view(connection, View(at))
    assert shared is not None
    return lineage_of(connection, Question(node, View(at)), shared), shared


def asked(engine: Engine, memory: JobMemory, name: str, at: int = MOMENT) -> dict[str, Any]:
    """Return the lineage of a dataset in a transaction of its own."""
    with reading(engine).connect() as connection:
        return answered(connection, memory, name, at)[0]


def kept(engine: Engine, memory: JobMemory, name: str) -> tuple[int, int]:
    """Return how many jobs of a dataset's lineage memory had, and how many were read."""
    with reading(engine).connect() as connection:
        shared = answered(connection, memory, name)[1]
    return shared.from_memory, shared.from_database


TABLES = tuple("abcdefgh")
NAMES = ("load", "clean", "count", "app.one", "app.two", "stream")


def story(engine: Engine, chance: random.Random) -> Iterator[str]:
    """Do one thing after the other to a store; gives what was done."""
    for step in range(12):
        what = chance.choices(
            ("events", "alias", "forget job", "forget table", "expire", "settings"),
            (20, 2, 1, 1, 1, 1),
        )[0]
        if what == "events":
            fill(engine, [random_event(chance, step) for _ in range(chance.randint(1, 4))])
        elif what == "alias":
            with engine.begin() as connection:
                apply_alias(connection, *(("db", one) for one in chance.sample(TABLES, 2)))
        elif what == "expire":
            with engine.begin() as connection:
                expire(connection, datetime(2026, 11, 20, 12, 0, chance.randint(0, 30), tzinfo=UTC))
        elif what == "settings":
            with engine.begin() as connection:
                agree(connection, "recent_runs", str(chance.randint(0, 3)))
        else:
            named: tuple[Any, str, str] = (
                ("job", "ns", chance.choice(NAMES))
                if what == "forget job"
                else ("dataset", "db", chance.choice(TABLES))
            )
            forget(engine, Subject(*named), Requester(NOW, "tests"), execute=True)
        yield what


def random_event(chance: random.Random, step: int) -> Record:
    job, seconds = chance.choice(NAMES), chance.randint(1, 40) + step / 100
    reads, writes = (chance.sample(TABLES, chance.randint(0, 2)) for _ in range(2))
    shaped = [
        columns(name, x=(chance.choice(TABLES), "x")) if chance.random() < 0.4 else name
        for name in writes
    ]
    if shaped and chance.random() < 0.2:
        shaped[0] = chance.choice((creates(writes[0]), dropped(writes[0])))
    of_run: dict[str, Any] = (
        parent("app", str(chance.randint(1, 2))) if job.startswith("app.") else {}
    )
    if job == "app.two" and chance.random() < 0.3:
        of_run = parent("other")
    if chance.random() < 0.3:
        of_run = of_run | {
            "errorMessage": FACET | {"message": f"no {step}", "programmingLanguage": "SQL"}
        }
    streams = (
        {"jobType": FACET | {"processingType": "STREAMING", "integration": "SPARK"}}
        if job == "stream"
        else {}
    )
    kind = chance.choice(("START", "RUNNING", "COMPLETE", "COMPLETE", "FAIL", "ABORT", None))
    if kind is not None and chance.random() < 0.1:
        job, of_run = "app", parent("dag")
    which = str(chance.randint(1, 4))
    return run(kind, seconds, job, reads, shaped, run_id=which, of_run=of_run, of_job=streams)


def dropped(name: str) -> dict[str, Any]:
    return dataset(name, lifecycleStateChange=FACET | {"lifecycleStateChange": "DROP"})
