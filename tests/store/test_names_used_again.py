"""Tables that swap their names, and names that are written again after a rename."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

import orjson
import pytest
from sqlalchemy import Engine

from strandline.core.access.granted import EVERYTHING
from strandline.core.openlineage.times import micros_of
from strandline.core.walk import Direction
from strandline.errors import RefusedError
from strandline.store.catalog.received import event_filter, events_page
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.ingest.labels import relabel
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_lineage import Question, lineage_of
from worlds.builders import NOON, Json, dataset, event, folded_rows, job_event, rows, store

NAMESPACE = "hive://metastore:9083"


def table(name: str, before: str | None = None, **facets: Any) -> Json:
    if before is None:
        return dataset(name, NAMESPACE, **facets)
    change = {
        "lifecycleStateChange": "RENAME",
        "previousIdentifier": {"namespace": NAMESPACE, "name": before},
    }
    return dataset(name, NAMESPACE, lifecycleStateChange=change, **facets)


def renamed(second: int, old: str, new: str, **more: Any) -> list[Json]:
    """The START and the COMPLETE of a rename."""
    job, outputs = f"rename {old}", [table(new, old)]
    return [
        event("START", second, job, second - 0.5, outputs=outputs, **more),
        event("COMPLETE", second, job, second, outputs=outputs, **more),
    ]


def made(second: int, source: str, name: str, job: str | None = None) -> Json:
    return event(
        "COMPLETE", second, job or f"make {name}", second,
        inputs=[table(source)], outputs=[table(name)],
    )  # fmt: skip


def sources_of(engine: Engine, name: str) -> set[str]:
    """Return the names of the datasets that one was made from, without its own."""
    with engine.connect() as connection:
        question = Question(
            node_called(connection, name),
            View(micros_of(NOON + timedelta(seconds=1000))),
            Direction.UPSTREAM,
        )
        nodes = lineage_of(connection, question)["nodes"]
    return {node["name"] for node in nodes if node["type"] == "dataset" and node["distance"]}


SWAP = [
    made(1, "src1", "db.a"),
    made(2, "src2", "db.b"),
    made(3, "db.a", "db.out"),
    *renamed(5, "db.a", "db.spare"),
    *renamed(6, "db.b", "db.a"),
    *renamed(7, "db.spare", "db.b"),
]
AFTER = made(9, "db.a", "db.later")


def some_orders(events: Sequence[Json], count: int) -> list[list[Json]]:
    random = Random(7)
    return [list(events), list(events)[::-1], *(
        random.sample(list(events), len(events)) for _ in range(count)
    )]  # fmt: skip


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("order", some_orders([*SWAP, AFTER], 4), ids=range(6))
def test_tables_that_swap_their_names_keep_their_history(
    engine: Engine, order: list[Json], size: int
) -> None:
    store(engine, order, size=size)

    assert sources_of(engine, "db.out") == {"db.b", "src1"}
    assert sources_of(engine, "db.b") == {"src1"}
    assert sources_of(engine, "db.a") == {"src2"}
    assert sources_of(engine, "db.later") == {"db.a", "src2"}
    with engine.begin() as connection:
        assert relabel(connection) == 0


REUSED = [
    made(1, "src1", "db.a"),
    *renamed(3, "db.a", "db.old"),
    made(5, "src2", "db.a", "make another"),
    made(6, "db.old", "db.of_old"),
    made(7, "db.a", "db.of_new"),
]


@pytest.mark.parametrize("order", some_orders(REUSED, 4), ids=range(6))
def test_a_name_that_is_written_again_is_another_table(engine: Engine, order: list[Json]) -> None:
    store(engine, order, size=1)

    assert sources_of(engine, "db.of_old") == {"db.old", "src1"}
    assert sources_of(engine, "db.of_new") == {"db.a", "src2"}


@pytest.mark.parametrize("order", some_orders(SWAP, 2))
def test_events_of_a_table_are_those_that_meant_it(engine: Engine, order: list[Json]) -> None:
    store(engine, order, size=1)

    assert jobs_in_events(engine, "db.a") == {"make db.b", "rename db.b"}
    assert jobs_in_events(engine, "db.b") == {
        "make db.a", "make db.out", "rename db.a", "rename db.spare",
    }  # fmt: skip


def jobs_in_events(engine: Engine, name: str) -> set[str]:
    """Return the jobs of the events that name a table."""
    with engine.connect() as connection:
        wanted = event_filter(connection, None, None, name, None, None)
        events, _ = events_page(connection, 100, None, wanted, EVERYTHING)
        return {orjson.loads(one.body)["job"]["name"] for one in events}


def test_what_names_now_find_is_the_table_of_today(engine: Engine) -> None:
    store(engine, SWAP, size=2)

    with engine.connect() as connection:
        assert node_called(connection, "db.a").name == "db.a"
        assert node_called(connection, "db.b").name == "db.b"
        assert node_called(connection, "db.spare").name == "db.b"
    shown = dict(
        rows(
            engine,
            "SELECT d.name, c.name FROM datasets d JOIN datasets c ON c.id = d.canonical_id",
        )
    )
    assert shown["db.a (renamed to db.spare)"] == "db.b"
    assert shown["db.b (renamed to db.a)"] == "db.a"


def test_two_producers_tell_of_one_swap(engine: Engine) -> None:
    """The second lists the former names as inputs as well, and a little later."""
    others = [
        event(
            "COMPLETE", 10 + second, "other", second + 0.2,
            inputs=[table(old)], outputs=[table(new, old)],
        )
        for second, old, new in (
            (5, "db.a", "db.spare"), (6, "db.b", "db.a"), (7, "db.spare", "db.b"),
        )
    ]  # fmt: skip
    store(engine, [*SWAP, *others, AFTER], size=2)

    assert sources_of(engine, "db.out") == {"db.b", "src1"}
    assert sources_of(engine, "db.later") == {"db.a", "src2"}


COLUMNS = {
    "fields": {
        "x": {"inputFields": [{"namespace": NAMESPACE, "name": "db.a", "field": "x"}]},
    }
}


@pytest.mark.parametrize("order", [1, -1])
def test_column_edges_name_the_table_of_their_time(engine: Engine, order: int) -> None:
    events = [
        made(1, "src1", "db.a"),
        event("COMPLETE", 2, "copy", 2, outputs=[table("db.out", columnLineage=COLUMNS)]),
        *renamed(3, "db.a", "db.old"),
        made(5, "src2", "db.a", "make another"),
    ]
    store(engine, events[::order], size=1)

    assert sources_of(engine, "db.out") == {"db.old", "src1"}


@pytest.mark.parametrize("order", [1, -1])
def test_designs_and_facets_belong_to_the_table_of_their_time(engine: Engine, order: int) -> None:
    documented = table("db.a", documentation={"description": "the first"})
    events = [
        event("COMPLETE", 1, "load", 1, inputs=[table("src1")], outputs=[documented]),
        job_event("plan", 2, inputs=[table("db.a")], outputs=[table("db.planned")]),
        *renamed(3, "db.a", "db.old"),
        made(5, "src2", "db.a", "make another"),
    ]
    store(engine, events[::order], size=1)

    assert sources_of(engine, "db.planned") == {"db.old", "src1"}
    facets = rows(
        engine,
        "SELECT DISTINCT c.name FROM facet_uses u JOIN datasets d ON d.id = u.entity_id"
        " JOIN datasets c ON c.id = d.canonical_id"
        " JOIN facet_sets s ON s.set_id = u.set_id WHERE s.key = 'documentation'"
        " UNION SELECT c.name FROM facets f JOIN datasets d ON d.id = f.entity_id"
        " JOIN datasets c ON c.id = d.canonical_id WHERE f.key = 'documentation'",
    )
    assert facets == [("db.old",)]


def test_a_swap_every_day_adds_to_the_former_table(engine: Engine) -> None:
    events: list[Json] = []
    for day in range(3):
        first = 100 * day
        events += [
            made(first + 1, f"src{day}", "db.new", "build"),
            *renamed(first + 3, "db.a", "db.old"),
            *renamed(first + 5, "db.new", "db.a"),
            made(first + 7, "db.a", f"db.report{day}", "report"),
        ]
    store(engine, events, size=1)

    assert "src2" in sources_of(engine, "db.a")
    assert "src2" not in sources_of(engine, "db.old")
    assert sources_of(engine, "db.report2") >= {"db.a", "src2"}


@pytest.mark.parametrize("events", [[*SWAP, AFTER], REUSED], ids=["swap", "reused"])
def test_any_order_leaves_the_same_rows(
    sqlite_engine: Engine, plain_engine: Engine, events: list[Json]
) -> None:
    store(sqlite_engine, events, NOON, size=1)
    store(plain_engine, events[::-1], NOON, size=3)

    with sqlite_engine.connect() as connection, plain_engine.connect() as other:
        assert folded_rows(connection) == folded_rows(other)


def random_renames(random: Random) -> tuple[list[Json], dict[str, set[str]]]:
    """Return events that write and rename tables, and what each table was made from, by its name.

    A name that no table has makes a new one when it is written.
    """
    names = [f"db.{letter}" for letter in "abcd"]
    tables: dict[str, set[str]] = {}
    renames = set[tuple[str, str]]()
    events: list[Json] = []
    for step in range(random.randint(4, 12)):
        moment, name = 3 * step + 3, random.choice(names)
        free = [other for other in names if other not in tables and (name, other) not in renames]
        if name in tables and free and random.random() < 0.7:
            new_name = random.choice(free)
            renames.add((name, new_name))
            tables[new_name] = tables.pop(name)
            events += renamed(moment, name, new_name)
        else:
            tables.setdefault(name, set()).add(f"src{step}")
            events.append(made(moment, f"src{step}", name, f"job{step}"))
    return events, tables


@pytest.mark.parametrize("seed", range(12))
def test_each_table_has_what_was_written_into_it_whatever_its_names_were(
    engine: Engine, seed: int
) -> None:
    random = Random(seed)
    events, tables = random_renames(random)
    random.shuffle(events)
    store(engine, events, NOON, size=random.choice([1, 2, 100]))

    assert {name: sources_of(engine, name) for name in tables} == tables


def test_a_table_whose_old_name_is_anothers_is_forgotten_after_that(sqlite_engine: Engine) -> None:
    store(sqlite_engine, SWAP)
    who = Requester(NOON, "somebody")
    with pytest.raises(RefusedError, match=r"its events before a rename call it 'db\.a'"):
        forget(sqlite_engine, Subject("dataset", NAMESPACE, "db.b"), who, execute=True)
