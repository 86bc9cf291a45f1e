"""Templates store equal edges of runs once, in any order of events."""

import random
from typing import Any

import pytest
from sqlalchemy import Engine

from strandline.core.changes.rows import EdgesUsed, RelationSeen
from strandline.core.changes.run_templates import Template, TimeSpan, rows_in, split
from worlds.builders import dataset, event, history, rows, run_id, store

USES = "SELECT count(*) FROM run_templates"
CONTENT = "SELECT count(DISTINCT template_id) FROM template_relations"


def nightly(
    number: int, *, reads: tuple[str, ...] = ("bank.a",), kind: str = "COMPLETE", at: int = 60
) -> Any:
    """An event of a run of a job."""
    return event(
        kind,
        run_id(number),
        "nightly",
        at,
        inputs=[dataset(one) for one in reads],
        outputs=[dataset("bank.b")],
    )


def of_relations(*times: tuple[int, int]) -> list[RelationSeen]:
    return [RelationSeen(7, 0, place, 0, *span) for place, span in enumerate(times)]


def of_edges(*times: int) -> list[EdgesUsed]:
    return [EdgesUsed(7, place, 2, bytes([place]), at) for place, at in enumerate(times)]


def joined(parts: dict[Template, TimeSpan]) -> tuple[list[RelationSeen], list[EdgesUsed]]:
    """The rows of all templates of the run."""
    found = [rows_in(7, template, span) for template, span in parts.items()]
    return sorted(row for one, _ in found for row in one), sorted(
        row for _, one in found for row in one
    )


@pytest.mark.parametrize("chance", [random.Random(seed) for seed in range(8)])
def test_joined_templates_equal_the_rows_without_repetition(chance: random.Random) -> None:
    for _ in range(100):
        check_split(chance)


def check_split(chance: random.Random) -> None:
    """A random run's rows, in templates and back."""
    most = chance.choice((2, 4, 40))
    spans = [sorted(chance.choices(range(most), k=2)) for _ in range(chance.randint(0, 20))]
    relations = of_relations(*((first, newest) for first, newest in spans))
    edges = of_edges(*chance.choices(range(most), k=chance.randint(0, 9)))
    chance.shuffle(shuffled := [*relations])

    parts = split(relations, edges)

    assert joined(parts) == (relations, edges)
    assert split(shuffled, edges[::-1]) == parts
    assert len({one.id for one in parts}) == len(parts)


def test_runs_with_equal_edges_share_one_template(engine: Engine) -> None:
    store(engine, [nightly(number) for number in range(20)])
    store(engine, [nightly(number, at=120) for number in range(10)])

    assert rows(engine, USES) == [(20,)]
    assert rows(engine, CONTENT) == [(1,)]
    lasted = "SELECT newest_at - first_at, count(*) FROM run_templates GROUP BY newest_at - first_at ORDER BY 1"
    assert rows(engine, lasted) == [(0, 10), (60_000_000, 10)]


def test_additional_input_gets_its_own_template(engine: Engine) -> None:
    store(engine, [nightly(1, kind="START", at=0)])
    store(engine, [nightly(1, reads=("bank.a", "bank.c"))])

    found = "SELECT first_at, newest_at, count(*) FROM run_relations GROUP BY first_at, newest_at ORDER BY first_at"
    assert [(newest - first, count) for first, newest, count in rows(engine, found)] == [
        (60_000_000, 2),
        (0, 1),
    ]
    assert rows(engine, USES) == [(2,)]
    assert len(history(engine)) == 3
