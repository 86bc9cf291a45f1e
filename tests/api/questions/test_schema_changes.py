"""Columns added, removed or retyped between two moments, according to the stored events."""

import random
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, delete

from strandline.core.access.granted import Access
from strandline.store.questions import past_schemas
from strandline.store.questions.lineage_answers import ANSWERS
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.narrowed import narrowed
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import dataset, run
from worlds.scenarios.taking import fill, reader, view

Fields = dict[str, str]
MOMENT = "2026-11-20T12:00:{:09.6f}+00:00"


def moment(seconds: float) -> str:
    return MOMENT.format(seconds)


def table(named: str, fields: Fields) -> dict[str, Any]:
    """A dataset that states these columns."""
    return dataset(
        named,
        schema=FACET
        | {"fields": [{"name": name, "type": type_} for name, type_ in fields.items()]},
    )


def changes(engine: Engine, since: float, until: float, **given: Any) -> dict[str, Any]:
    asked = {"since": view(moment(since)).at, "granularity": "column", "node": ["t"]} | given
    with reader(engine) as connection:
        return ANSWERS["/lineage/changes"](connection, asked, view(moment(until), past=True))


def columns_of(answer: dict[str, Any]) -> list[tuple[Any, ...]]:
    lines = [one for one in answer["items"] if one["kind"] == "column"]
    return [(one["change"], one["id"], one["before"], one["after"]) for one in lines]


def test_changes_lists_added_removed_and_retyped_columns(engine: Engine) -> None:
    nested = dataset("t", schema=FACET | {"fields": [
        {"name": "id", "type": "long"}, {"name": "at", "type": "date"},
        {"name": "place", "type": "struct", "fields": [{"name": "city", "type": "string"}]},
    ]})  # fmt: skip
    fill(
        engine,
        [
            run(
                "COMPLETE",
                1,
                "load",
                ["s"],
                [table("t", {"id": "int", "name": "string", "at": "date"})],
            ),
            run("COMPLETE", 3, "load", ["s"], [nested], run_id="2"),
        ],
    )

    answer = changes(engine, 2, 4)

    assert columns_of(answer) == [
        ("added", "column:db:t:place", None, "struct"),
        ("added", "column:db:t:place.city", None, "string"),
        ("changed", "column:db:t:id", "int", "long"),
        ("removed", "column:db:t:name", "string", None),
    ]
    assert (answer["added"], answer["removed"], answer["changed"], answer["hidden"]["schemas"]) == (
        2,
        1,
        1,
        0,
    )
    assert columns_of(changes(engine, 2, 2.5)) == []
    assert columns_of(changes(engine, 2, 4, granularity="table")) == []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_newest_event_decides_columns_in_random_histories_of_any_order(
    engine: Engine, seed: int
) -> None:
    chance = random.Random(seed)
    history: list[tuple[int, str, Fields]] = []
    for second in range(1, 25):
        fields = {name: chance.choice(["int", "long"]) for name in "abcd" if chance.random() < 0.7}
        history.append((second, chance.choice(["t", "u"]), fields))
    records = [
        run(
            chance.choice(["START", "RUNNING"]),
            second,
            "load",
            ["s"],
            [table(named, fields)],
            run_id=str(second % 5),
        )
        for second, named, fields in history
    ] + [run("START", 0, "load", ["s"], ["t", "u"], run_id="0")]
    late = [
        one._replace(received_at=one.received_at + timedelta(seconds=chance.random() * 200))
        for one in records
    ]
    chance.shuffle(late)
    fill(engine, late)

    def stated(named: str, by: float) -> Fields | None:
        return next(
            (fields for at, of, fields in reversed(history) if of == named and at <= by), None
        )

    for _ in range(12):
        first, last = sorted(chance.sample(range(30), 2))
        expected, unclear = [], 0
        for named in ("t", "u"):
            old, new = stated(named, first + 0.5), stated(named, last + 0.5)
            if old is None:
                unclear += any(of == named for _, of, _ in history)
                continue
            assert new is not None
            ends = {name: (old.get(name), new.get(name)) for name in {**old, **new}}
            expected += [
                (f"column:db:{named}:{name}", *both)
                for name, both in ends.items()
                if both[0] != both[1]
            ]

        answer = changes(engine, first + 0.5, last + 0.5, node=["t", "u"])

        assert sorted(line[1:] for line in columns_of(answer)) == sorted(expected)
        assert answer["hidden"]["schemas"] == unclear


def test_schema_changes_stay_undecided_without_visible_events(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(
        engine,
        [
            run("COMPLETE", 1, "load", ["s"], [table("t", {"id": "int"})]),
            *(
                run("COMPLETE", 2 + second / 100, f"other_{second}", ["a"], ["b"])
                for second in range(6)
            ),
            run("COMPLETE", 4, "load", ["s"], [table("t", {"id": "long"})], run_id="2"),
        ],
    )
    whole = [("changed", "column:db:t:id", "int", "long")]
    assert columns_of(changes(engine, 3, 5)) == whole

    asked = {"since": view(moment(3)).at, "granularity": "column", "node": ["t"]}
    with narrowed(
        engine, Access("reader", frozenset({"read"}), ("db", "ns"))
    ).connect() as connection:
        seen = ANSWERS["/lineage/changes"](connection, asked, view(moment(5), past=True))
    assert (columns_of(seen), seen["hidden"]["schemas"]) == ([], 1)

    monkeypatch.setattr(past_schemas, "MOST_READ", 3)
    cut = changes(engine, 3, 5)
    assert (columns_of(cut), cut["hidden"]["schemas"]) == ([], 1)
    monkeypatch.undo()
    with engine.begin() as connection:
        connection.execute(delete(raw_events).where(raw_events.c.event_time < view(moment(3)).at))
    gone = changes(engine, 3, 5)
    assert (columns_of(gone), gone["hidden"]["schemas"]) == ([], 1)
