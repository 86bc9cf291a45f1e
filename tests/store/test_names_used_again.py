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
from strandline.history.compare import differences
from strandline.store.catalog.received import event_filter, events_page
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.ingest.labels import relabel
from strandline.store.ingest.raw_events import events_of
from strandline.store.lineage.lookup import node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of
from worlds.builders import (
    NOON,
    Json,
    dataset,
    event,
    job_event,
    rows,
    store,
    symlink,
)

NAMESPACE = "hive://metastore:9083"


def table(name: str, before: str | None = None, **facets: Any) -> Json:
    if before is None:
        return dataset(name, NAMESPACE, **facets)
    change = {
        "lifecycleStateChange": "RENAME",
        "previousIdentifier": {"namespace": NAMESPACE, "name": before},
    }
    return dataset(name, NAMESPACE, lifecycleStateChange=change, **facets)


def renamed(second: int, old: str, new: str, run: int | str | None = None) -> list[Json]:
    """The START and the COMPLETE of a rename."""
    job, outputs = f"rename {old}", [table(new, old)]
    run = second if run is None else run
    return [
        event("START", run, job, second - 0.5, outputs=outputs),
        event("COMPLETE", run, job, second, outputs=outputs),
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


def at_place(place: str, name: str, **facets: Any) -> Json:
    """A table at a place, with its name in a catalog."""
    return dataset(place, "file", symlinks=symlink(name, NAMESPACE), **facets)


def made_at(second: int, source: str, place: str, name: str) -> Json:
    outputs = [at_place(place, name)]
    return event("COMPLETE", second, f"make {second}", second, [table(source)], outputs)


PLACES = [
    made_at(1, "src1", "/w/1", "db.a"),
    made(2, "db.a", "db.out"),
    *renamed(3, "db.a", "db.old"),
    made_at(5, "src2", "/w/2", "db.a"),
    made_at(6, "src3", "/w/1", "db.old"),
]


@pytest.mark.parametrize("order", some_orders(PLACES, 4), ids=range(6))
def test_tables_with_the_same_past_name_stay_apart(engine: Engine, order: list[Json]) -> None:
    store(engine, order, size=1)

    assert sources_of(engine, "db.old") == {"src1", "src3"}
    assert sources_of(engine, "db.a") == {"src2"}
    assert sources_of(engine, "db.out") == {"/w/1", "src1", "src3"}


TWICE = [
    made(1, "src1", "db.a"),
    *renamed(3, "db.a", "db.b"),
    *renamed(5, "db.b", "db.c"),
    made(7, "src2", "db.a", "make another"),
    *renamed(9, "db.a", "db.b"),
    made(11, "src3", "db.a", "make a third"),
]


@pytest.mark.parametrize("order", some_orders(TWICE, 4), ids=range(6))
def test_two_tables_that_are_renamed_alike_stay_apart(engine: Engine, order: list[Json]) -> None:
    store(engine, order, size=1)

    sources = {name: sources_of(engine, f"db.{name}") for name in "abc"}
    assert sources == {"c": {"src1"}, "b": {"src2"}, "a": {"src3"}}


def described(second: int, name: str, text: str) -> Json:
    """A DatasetEvent."""
    documented = table(name, documentation={"description": text})
    told = event(None, 0, "none", second, inputs=None, outputs=None, dataset=documented)
    del told["run"], told["job"]
    return told


DESCRIBED = [
    described(1, "db.a", "the first"),
    made(2, "src1", "db.a"),
    *renamed(3, "db.a", "db.old"),
    made(5, "src2", "db.a", "make another"),
    described(6, "db.a", "another"),
]


@pytest.mark.parametrize("order", some_orders(DESCRIBED, 4), ids=range(6))
def test_dataset_events_belong_to_the_table_of_their_time(
    engine: Engine, order: list[Json]
) -> None:
    store(engine, order, size=1)

    noon = micros_of(NOON) // 10**6
    dates = "SELECT name, first_at / 1000000 - {0}, newest_at / 1000000 - {0} FROM datasets"
    seconds = {name: (first, last) for name, first, last in rows(engine, dates.format(noon))}
    assert seconds["db.a (renamed to db.old at 2026-11-20T12:00:03+00:00)"] == (1, 3)
    assert seconds["db.a"] == (5, 6)


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
    assert shown["db.a (renamed to db.spare at 2026-11-20T12:00:05+00:00)"] == "db.b"
    assert shown["db.b (renamed to db.a at 2026-11-20T12:00:06+00:00)"] == "db.a"


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

    assert differences(sqlite_engine, plain_engine) == {}


class Tables:
    """Tables that are written, renamed and described, and the events that tell so.

    sources: what each table was made from, by its name now. A table lies at a place that its
    events name, with the name in a catalog beside it; or they have this name alone.
    """

    def __init__(self, random: Random) -> None:
        self.events: list[Json] = []
        self.sources: dict[str, set[str]] = {}
        self._places: dict[str, str | None] = {}
        self._random = random

    def step(self, number: int) -> None:
        """Rename, describe or write one of four names; a name that no table has gets a new one."""
        moment, name = 3 * number + 3, self._random.choice(NAMES)
        free = [other for other in NAMES if other not in self.sources]
        chance = self._random.random()
        if name in self.sources and free and chance < 0.5:
            self._rename(moment, name, self._random.choice(free))
        elif name in self.sources and chance < 0.6:
            self._describe(moment, name)
        elif name in self.sources and chance < 0.7:
            self._read(moment, name)
        else:
            self._write(moment, name, number)

    def _rename(self, moment: int, name: str, new_name: str) -> None:
        self.sources[new_name] = self.sources.pop(name)
        self._places[new_name] = self._places.pop(name)
        self.events += renamed(moment, name, new_name, run=f"rename {moment}")
        if self._random.random() < 0.3:  # another producer says so as well, and a little later
            before = table(new_name, name)["facets"]["lifecycleStateChange"]
            output = self._dataset(new_name, lifecycleStateChange=before)
            told = event("COMPLETE", f"told {moment}", "other", moment + 0.2, outputs=[output])
            self.events.append(told)

    def _read(self, moment: int, name: str) -> None:
        field = {"namespace": NAMESPACE, "name": name, "field": "x"}
        output = table("db.out", columnLineage={"fields": {"x": {"inputFields": [field]}}})
        inputs = [self._dataset(name)] if self._random.random() < 0.5 else []
        told = event(
            "COMPLETE", f"read {moment}", "report", moment, inputs=inputs, outputs=[output]
        )
        self.events.append(told)

    def _describe(self, moment: int, name: str) -> None:
        told = described(moment, name, f"of {moment}")
        told["dataset"] = self._dataset(name, **told["dataset"]["facets"])
        self.events.append(told)

    def _write(self, moment: int, name: str, number: int) -> None:
        if name not in self.sources:
            self.sources[name] = set()
            self._places[name] = self._random.choice([f"/place/{number}", None])
        source = f"src{number}"
        self.sources[name].add(source)
        output = self._dataset(name)
        self.events += [
            event(
                kind, number + 1, f"job{number}", moment, inputs=[table(source)], outputs=[output]
            )
            for kind in ("START", "COMPLETE")
        ]

    def _dataset(self, name: str, **facets: Any) -> Json:
        place = self._places[name]
        return table(name, **facets) if place is None else at_place(place, name, **facets)


NAMES = [f"db.{letter}" for letter in "abcd"]


@pytest.mark.parametrize("seed", range(16))
def test_each_table_has_what_was_written_into_it_whatever_its_names_were(
    engine: Engine, plain_engine: Engine, seed: int
) -> None:
    random = Random(seed)
    tables = Tables(random)
    for number in range(random.randint(4, 16)):
        tables.step(number)
    store(plain_engine, tables.events, NOON, size=1)
    random.shuffle(tables.events)
    store(engine, tables.events, NOON, size=random.choice([1, 2, 5, 100]))

    assert {name: sources_of(engine, name) for name in tables.sources} == tables.sources
    assert differences(engine, plain_engine) == {}
    with engine.begin() as connection:
        assert relabel(connection) == 0


IN_SQL = {"sql": {"query": "INSERT INTO db.out SELECT * FROM db.a"}}
READ = event("COMPLETE", 3, "make db.out", 3, [table("db.a")], [table("db.out")], None, IN_SQL)
BY_FORGOTTEN = {
    "db.b": {
        "make db.a": [], "make db.b": ["db.b"], "make db.out": ["db.out"],
        "rename db.b": ["db.a"],
    },
    "db.a": {
        "make db.a": ["db.a"], "make db.b": [], "make db.out": ["db.a", "db.out"],
        "rename db.a": ["db.spare"], "rename db.spare": ["db.b"],
    },
}  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("forgotten", ["db.a", "db.b"])
def test_tables_of_a_swap_are_forgotten_independently(
    engine: Engine, forgotten: str, order: int
) -> None:
    events = [*SWAP[:2], READ, *SWAP[3:]]
    store(engine, events[::order], NOON)
    subject = Subject("dataset", NAMESPACE, forgotten)
    forget(engine, subject, Requester(NOON, "somebody"), execute=True)

    other = {"db.a": "db.b", "db.b": "db.a"}[forgotten]
    assert sources_of(engine, other) == {"src1" if other == "db.b" else "src2"}
    names = dict[str, list[str]]()
    for stored in stored_events(engine):
        datasets = [*stored["inputs"], *stored["outputs"]]
        told = {one["name"] for one in datasets if not one["name"].startswith("src")}
        names[stored["job"]["name"]] = sorted(told)
        sql = stored["job"]["facets"].get("sql")
        if sql is not None:
            assert ("db.a" in sql["query"]) is (forgotten == "db.a")
    assert {job: told for job, told in names.items() if told or "make" in job} == (
        BY_FORGOTTEN[forgotten]
    )
    # The other table's events before the swap have the name still, and nothing else has.
    named = f"SELECT named, first_at FROM datasets WHERE name = '{forgotten}'"
    assert rows(engine, named) == [(0, None)]


def stored_events(engine: Engine) -> list[Json]:
    with engine.connect() as connection:
        return [orjson.loads(stored.body) for stored in events_of(connection)]
