"""Random histories against servers that are killed: every answer matches the oracle."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from fixtures.versions_server.live_world import (
    Telling,
    live_world,
    strong_over_rest,
    tell_all,
    weak_over_rest,
)
from fixtures.versions_server.process import served
from worlds.barriers.running import strong_by_definition, weak_by_definition

SEEDS = [
    pytest.param(seed, id=f"history {seed}", marks=() if seed == 1 else pytest.mark.soak)
    for seed in range(30)
]


def checking(telling: Telling) -> Callable[[], None]:
    """A comparison of all servers with the oracle."""

    def check() -> None:
        tables = sorted(telling.world.truth)
        query = [
            one
            for one in telling.random.sample(tables, min(2, len(tables)))
            if telling.oracle.tracked(one)
        ]
        wanted = {one: strong_by_definition(telling.oracle, one) for one in tables}
        for server in telling.servers:
            assert {one: strong_over_rest(server, one) for one in tables} == wanted
            if query:
                assert weak_over_rest(server, query) == weak_by_definition(telling.oracle, query)

    return check


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("database", "count"),
    [("sqlite", 1), pytest.param("postgres", 2, marks=pytest.mark.postgres)],
)
def test_killed_servers_answer_as_the_oracle(
    seed: int, database: str, count: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with served(request.getfixturevalue(f"{database}_url"), tmp_path, count) as servers:
        telling = Telling(live_world(seed), servers, Random(seed), kills=2)
        tell_all(telling, 30, checking(telling))

    assert telling.kills == 0
