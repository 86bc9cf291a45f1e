"""The search finds what a slow scan over the events finds."""

import random
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select

from strandline.core.access.granted import Access
from strandline.core.openlineage.times import micros_of
from strandline.errors import OverloadError
from strandline.store.catalog.search import search_page
from strandline.store.ingest.forget import forget_secret
from strandline.store.ingest.name_patterns import apply_alias
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from strandline.store.marquez.annotations import TAG, Author, Note, annotate
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.run_tables import jobs
from strandline.store.schema.search_tables import search_names, search_texts
from strandline.store.search import finding, upkeep
from strandline.store.search.finding import fold
from strandline.store.sql.engine import reading
from strandline.store.sql.narrowed import narrowed
from strandline.store.sql.pages import decode_cursor
from worlds.builders import NOON, Json, dataset, encode, event, run_id, store, symlink

NOW = micros_of(NOON + timedelta(hours=1))
LETTERS = "abAB_%.\\*'\" -/:é́ÉßẞİıΣςσЖж漢💧\n"
Found = tuple[str, str, str | None]


def searched(engine: Engine, text: str, limit: int = 7) -> list[Found]:
    """All that a search finds, page by page: (id, where, text)."""
    found: list[Found] = []
    after: Any = None
    with reading(engine).connect() as connection:
        while True:
            page = search_page(connection, text, limit, after, NOW)
            assert len(page["items"]) <= limit
            found += [(one["id"], one["matched"], one["text"]) for one in page["items"]]
            if page["nextCursor"] is None:
                return found
            after = decode_cursor(page["nextCursor"], (int, str, str, str))


def ids(found: Iterable[Found], where: str = "name") -> list[str]:
    return [id_ for id_, matched, _ in found if matched == where]


class Scan:
    """The expected results of a search.

    Every name, tag, column and line of SQL, one after the other.
    """

    def __init__(self, history: Iterable[Json], engine: Engine) -> None:
        self.columns: dict[tuple[str, str], list[str]] = {}
        self.tags: dict[tuple[str, str, str], list[str]] = {}
        self.sql: dict[tuple[str, str], list[str]] = {}
        for one in sorted(history, key=lambda one: str(one["eventTime"])):
            job = one["job"]
            if "sql" in job["facets"]:
                self.sql[job["namespace"], job["name"]] = job["facets"]["sql"]["query"].splitlines()
            for output in one["outputs"]:
                place = output["namespace"], output["name"]
                if "schema" in output["facets"]:
                    self.columns[place] = [
                        field["name"] for field in output["facets"]["schema"]["fields"]
                    ]
                if "tags" in output["facets"]:
                    self.tags["dataset", *place] = [
                        f"{tag['key']}=1" for tag in output["facets"]["tags"]["tags"]
                    ]
        with engine.connect() as connection:
            rows = connection.execute(select(datasets)).all()
            called = [
                ("job", one.namespace, one.name, [one.name])
                for one in connection.execute(select(jobs))
            ]
        self.names = called
        for row in rows:
            if row.id == row.canonical_id:
                group = [one for one in rows if one.canonical_id == row.id]
                own = [
                    text
                    for one in group
                    for text in (one.name, f"{one.catalog}.{one.database_name}.{one.table_name}")
                ]
                self.names.append(("dataset", row.namespace, row.name, own))
        self.groups: dict[tuple[str, str], int] = {
            (row.namespace, row.name): row.canonical_id for row in rows
        }

    def found(self, text: str) -> tuple[list[str], set[str], set[str], set[str]]:
        """By name in their order, by tag, by column, by SQL."""
        word = fold(text)
        by_name = sorted(
            (len(fold(name)), kind, fold(name), f"{kind}:{namespace}:{name}")
            for kind, namespace, name, own in self.names
            if any(word in fold(one) for one in own)
        )
        names = [id_ for *_, id_ in by_name]
        tags, columns, sql = (
            set(self._of(word, texts, names)) for texts in (self._tags(), self._columns(), self.sql)
        )
        return names, tags, columns - tags, sql

    def _tags(self) -> dict[tuple[str, str], list[str]]:
        return {(namespace, name): own for (_, namespace, name), own in self.tags.items()}

    def _columns(self) -> dict[tuple[str, str], list[str]]:
        return self.columns

    def _of(
        self, word: str, texts: dict[tuple[str, str], list[str]], names: list[str]
    ) -> Iterator[str]:
        kind = "job" if texts is self.sql else "dataset"
        for (namespace, name), own in texts.items():
            id_ = f"{kind}:{namespace}:{self._canonical(namespace, name) if kind == 'dataset' else name}"
            if id_ not in names and any(word in fold(one) for one in own):
                yield id_

    def _canonical(self, namespace: str, name: str) -> str:
        group = self.groups[namespace, name]
        return next(
            of
            for (_, of), id_ in self.groups.items()
            if id_ == group and f"dataset:{namespace}:{of}" in self._ids
        )

    @property
    def _ids(self) -> set[str]:
        return {f"{kind}:{namespace}:{name}" for kind, namespace, name, _ in self.names}


def words(chance: random.Random, most: int = 8) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randint(1, most)))


def history_of(chance: random.Random) -> list[Json]:
    """Runs of jobs with odd names, whose tables get other columns and tags, whose SQL changes, some with two names."""
    tables = [f"db.{words(chance)}{number}" for number in range(12)]
    events = []
    for run in range(60):
        name = chance.choice(tables)
        facets: Json = {
            "schema": {"fields": [{"name": words(chance)} for _ in range(chance.randint(1, 4))]}
        }
        if chance.random() < 0.3:
            facets["tags"] = {"tags": [{"key": words(chance), "value": "1"}]}
        if chance.random() < 0.2:
            facets["symlinks"] = symlink(f"lake.{name}")
        job_facets = (
            {"sql": {"query": f"SELECT {words(chance)}\nFROM {words(chance)}"}}
            if chance.random() < 0.5
            else {}
        )
        job = f"j{chance.randint(0, 9)}{LETTERS[:9]}"
        events.append(
            event(
                "COMPLETE", run, job, run, outputs=[dataset(name, **facets)], job_facets=job_facets
            )
        )
    return events


def check(engine: Engine, history: list[Json], chance: random.Random, most: int = 50) -> None:
    scan = Scan(history, engine)
    taken = [name for *_, own in scan.names for name in own] + [
        one for own in scan.columns.values() for one in own
    ]
    asked = [
        "a",
        "_",
        "%",
        "db",
        "B_",
        "j1",
        "no such text",
        *(words(chance, 3) for _ in range(10)),
    ]
    for _ in range(25):
        text = chance.choice(taken)
        start = chance.randrange(len(text))
        asked.append(
            chance.choice((str.upper, str.lower, str))(text[start : start + chance.randint(1, 6)])
        )
    for text in asked[-most:]:
        found = searched(engine, text, chance.choice((1, 3, 50)))
        names, tags, columns, sql = scan.found(text)
        assert ids(found) == names, text
        assert [set(ids(found, where)) for where in ("tag", "column", "sql")] == [
            tags,
            columns,
            sql,
        ], text
        assert len(found) == len({id_ for id_, _, _ in found}), text


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
def test_search_finds_what_a_scan_finds(
    engine: Engine, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    history = history_of(chance)
    arriving = chance.sample(history, len(history))
    store(engine, arriving, NOON, size=7)
    check(engine, history, chance)

    monkeypatch.setattr(finding, "FEW", 1)  # what more have is read page by page
    monkeypatch.setattr(finding, "AT_ONCE", 3)
    check(engine, history, chance, most=10)


def with_columns() -> list[Json]:
    """A table with columns and a job with SQL."""
    columns = [{"name": "id"}, {"name": "Amount", "fields": [{"name": "currency"}]}]
    many = [
        {"name": f"column_{number}", "description": "x" * 40} for number in range(60)
    ]  # compressed
    return [
        event(
            "COMPLETE",
            1,
            "etl",
            outputs=[
                dataset("bank.orders", schema={"fields": columns}),
                dataset("bank.wide", schema={"fields": many}),
            ],
            job_facets={"sql": {"query": "SELECT *\n  FROM raw\n WHERE amount > 0"}},
        ),
        event("COMPLETE", 2, "amount_report"),
    ]


@pytest.mark.parametrize("limit", [1, 10])
def test_search_covers_names_columns_and_sql(engine: Engine, limit: int) -> None:
    store(engine, with_columns(), NOON)

    assert searched(engine, "AMOUNT", limit) == [
        ("job:tests:amount_report", "name", None),
        ("dataset:hive://lake:bank.orders", "column", "Amount, Amount.currency"),
        ("job:tests:etl", "sql", "WHERE amount > 0"),
    ]
    assert searched(engine, "column_59", limit) == [
        ("dataset:hive://lake:bank.wide", "column", "column_59")
    ]
    assert searched(engine, "nothing of this") == []


def test_search_finds_columns_named_only_by_edges(engine: Engine) -> None:
    fields = {
        "net": {"inputFields": [{"namespace": "hive://lake", "name": "bank.raw", "field": "gross"}]}
    }
    sink = dataset("bank.t", columnLineage={"fields": fields})
    store(engine, [event("COMPLETE", 1, "etl", inputs=[dataset("bank.raw")], outputs=[sink])])

    assert searched(engine, "net") == [("dataset:hive://lake:bank.t", "column", "net")]


def test_missing_index_is_built_page_by_page(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(9)
    history = history_of(chance)
    store(engine, history, NOON)
    with engine.begin() as connection:
        upkeep.begin_anew(connection)
    with pytest.raises(OverloadError, match="tables of the search are being filled"):
        searched(engine, "db")

    monkeypatch.setattr(upkeep, "AT_ONCE", 5)
    assert not upkeep._fill_some(engine)
    store(engine, [event("COMPLETE", 99, "while it is made", 99)], NOON)
    upkeep.fill_index(engine)

    check(engine, [*history, event("COMPLETE", 99, "while it is made", 99)], chance)


def test_column_that_was_removed_and_restored_is_found(engine: Engine) -> None:
    """Another writer's batch comes between two of this one."""
    one, other = Batches(engine), Batches(engine)

    def write(batches: Batches, number: int, column: str) -> None:
        output = dataset("bank.t", schema={"fields": [{"name": column}]})
        batches.write(
            [Record(encode(event("COMPLETE", number, "etl", number, outputs=[output])), NOON)]
        )

    write(one, 1, "first")
    write(other, 2, "second")
    write(one, 3, "first")

    assert ids(searched(engine, "FIRST"), "column") == ["dataset:hive://lake:bank.t"]
    assert searched(engine, "second") == []


def test_manually_joined_names_are_found_as_one(engine: Engine) -> None:
    store(
        engine,
        [event("COMPLETE", 1, outputs=[dataset("bank.old"), dataset("bank.new_name")])],
        NOON,
    )
    with engine.begin() as connection:
        apply_alias(connection, ("hive://lake", "bank.old"), ("hive://lake", "bank.new_name"))

    assert len(ids(searched(engine, "bank."))) == 1
    assert (
        ids(searched(engine, "bank.old"))
        == ids(searched(engine, "bank.new_name"))
        == ids(searched(engine, "bank."))
    )


def test_run_is_found_by_its_id_prefix(engine: Engine) -> None:
    store(engine, [event("COMPLETE", number, "etl", number) for number in (1, 2, 30)], NOON)

    assert searched(engine, run_id(0)[:-1], 2) == [
        (f"run:tests:{run_id(number)}", "run", "etl") for number in (1, 2)
    ]
    assert ids(searched(engine, "00000000-0000-4000-8", 1), "run") == [
        f"run:tests:{run_id(number)}" for number in (1, 2, 30)
    ]
    assert searched(engine, "4000-8000") == searched(engine, "000") == []


def application(number: int, application_id: str, job: str = "etl") -> Json:
    facets = {"spark_applicationDetails": {"applicationId": application_id}}
    return event("START", number, job, number, facets=facets)


def test_attempts_of_an_application_are_told_apart_by_state_and_start(engine: Engine) -> None:
    shown = "application_1729097245443_0002"
    failed = event("FAIL", 1, "etl", 60)
    store(engine, [application(1, shown), failed, application(90, shown)], NOON)

    with reading(engine).connect() as connection:
        items = search_page(connection, shown, 5, None, NOW)["items"]

    attempts = {(one["name"], one["state"], one["startedAt"]) for one in items}
    assert attempts == {
        (run_id(1), "FAIL", "2026-11-20T12:00:01Z"),
        (run_id(90), "START", "2026-11-20T12:01:30Z"),
    }


def test_run_is_found_by_the_id_of_its_spark_application(engine: Engine) -> None:
    shown = "application_1729097245443_0002"
    other = application(3, "application_1729097245443_0003")
    other["job"]["namespace"] = "theirs"
    store(engine, [application(1, "local-1722950810332"), application(2, shown), other], NOON)

    assert searched(engine, shown.upper()) == [(f"run:tests:{run_id(2)}", "application", "etl")]
    assert ids(searched(engine, "1729097245443", 1), "application") == [
        f"run:tests:{run_id(2)}",
        f"run:theirs:{run_id(3)}",
    ]
    with reading(engine).connect() as connection:
        items = search_page(connection, "local-1722950810332", 5, None, NOW)["items"]
    assert [one["label"] for one in items] == ["local-1722950810332"]
    assert searched(engine, "local") == []
    ours = narrowed(engine, Access("key", frozenset(), ("tests",)))
    assert ids(searched(ours, "1729097245443"), "application") == [f"run:tests:{run_id(2)}"]


def below(run: Json, parent: int, root: int | None = None) -> Json:
    facet: Json = {"run": {"runId": run_id(parent)}, "job": {"namespace": "tests", "name": "etl"}}
    if root is not None:
        facet["root"] = {"run": {"runId": run_id(root)}, "job": facet["job"]}
    run["run"]["facets"]["parent"] = facet
    return run


def test_application_is_found_once_although_each_of_its_runs_has_its_id(engine: Engine) -> None:
    """As the stock listener sends it; an application that another has started is one of its own."""
    same, started = "local-1722950810332", "local-1722950810339"
    history = [
        below(application(5, started, "started"), 4),
        below(application(4, same, "etl.batch"), 3, 2),
        below(application(3, same, "etl.query"), 2, 2),
        below(application(2, same), 1),  # run 1 is a task of Airflow
        *(below(application(number, same, "etl.query"), 2) for number in range(10, 30)),
    ]
    store(engine, history, NOON)

    assert searched(engine, same) == [(f"run:tests:{run_id(2)}", "application", "etl")]
    assert searched(engine, started) == [(f"run:tests:{run_id(5)}", "application", "started")]
    found = searched(engine, "local-172295081033", 1)
    assert sorted(found) == sorted(searched(engine, same) + searched(engine, started))

    forget_secret(engine, same, execute=True)
    assert searched(engine, same) == []


def test_forgotten_application_id_is_not_found(engine: Engine) -> None:
    store(engine, [application(1, "local-1722950810332")], NOON)
    assert len(searched(engine, "local-1722950810332")) == 1

    forget_secret(engine, "local-1722950810332", execute=True)

    assert searched(engine, "local-1722950810332") == searched(engine, "1722950810332") == []


def test_table_is_found_by_the_id_of_a_snapshot(engine: Engine) -> None:
    """The whole id, as a person copies it from a table's history or an error."""
    written = dataset(
        "bank.t", symlinks=symlink("lake.t"), version={"datasetVersion": "2208550875502323500"}
    )
    store(engine, [event("COMPLETE", 1, "etl", outputs=[written])], NOON)

    assert searched(engine, "2208550875502323500") == [
        ("dataset:hive://lake:bank.t", "snapshot", "2208550875502323500")
    ]
    assert searched(engine, "220855087550232350") == searched(engine, "22085508755023235000") == []
    assert searched(narrowed(engine, Access("key", frozenset(), ())), "2208550875502323500") == []


def test_manual_tags_are_found_until_withdrawn(engine: Engine) -> None:
    store(
        engine,
        [event("COMPLETE", 1, "etl", outputs=[dataset("bank.t", symlinks=symlink("lake.t"))])],
        NOON,
    )
    with engine.begin() as connection:
        for row in connection.execute(select(datasets).where(datasets.c.name == "bank.t")).all():
            annotate(connection, Note(row.id, "dataset", TAG, "amount", "PII"), Author(1))
        for row in connection.execute(select(jobs)).all():
            annotate(connection, Note(row.id, "job", TAG, "", "PiiJob"), Author(1))

    assert [(matched, text) for _, matched, text in searched(engine, "pii", 1)] == [
        ("tag", "PII"),
        ("tag", "PiiJob"),
    ]


def test_restricted_key_finds_only_its_own_namespaces(engine: Engine) -> None:
    theirs = event("COMPLETE", 2, "etl_theirs", outputs=[dataset("t_secret", "theirs")])
    theirs["job"]["namespace"] = "theirs"
    shared = dataset("t_ours", "tests", symlinks=symlink("t_hidden", "theirs", "LOCATION"))
    store(engine, [event("COMPLETE", 1, "etl_ours", outputs=[shared]), theirs], NOON)
    ours = narrowed(engine, Access("key", frozenset(), ("tests",)))

    assert ids(searched(ours, "etl")) == ["job:tests:etl_ours"]
    assert searched(ours, "secret") == searched(ours, "theirs") == searched(ours, "hidden") == []
    assert searched(ours, run_id(2)) == []
    assert len(searched(ours, "t_ours")) <= 1
    assert searched(narrowed(engine, Access("key", frozenset(), ())), "etl") == []


def test_forgotten_name_is_removed_from_the_index(engine: Engine) -> None:
    columns = {"fields": [{"name": "HunterTwo22"}]}
    store(
        engine,
        [event("COMPLETE", 1, "job_HunterTwo22", outputs=[dataset("bank.t", schema=columns)])],
        NOON,
    )
    assert len(searched(engine, "huntertwo")) == 2

    forget_secret(engine, "HunterTwo22", execute=True)

    assert searched(engine, "huntertwo") == []
    assert ids(searched(engine, "job_[redacted")) == ["job:tests:job_[redacted]"]
    with engine.connect() as connection:
        for table in (search_names, search_texts):
            assert not [
                text for text in connection.scalars(select(table.c.texts)) if "hunter" in text
            ]


def test_tables_of_one_name_are_told_apart_by_place_and_last_write(engine: Engine) -> None:
    def of(catalog: str) -> Json:
        place = f"file:/{catalog}"
        return dataset(
            f"/{catalog}/bank/daily",
            "file",
            catalog={"name": catalog, "framework": "iceberg", "type": "jdbc"},
            symlinks=symlink("bank.daily", place),
        )

    store(
        engine,
        [
            event("COMPLETE", 1, "load", 0, outputs=[of("lake")]),
            event("COMPLETE", 2, "copy", 60, inputs=[of("lake")], outputs=[of("archive")]),
        ],
        NOON,
    )

    with reading(engine).connect() as connection:
        items = search_page(connection, "daily", 5, None, NOW)["items"]

    assert [(one["catalog"], one["table"], one["latestWrite"]["job"]["name"]) for one in items] == [
        ("lake", "daily", "load"),
        ("archive", "daily", "copy"),
    ]
