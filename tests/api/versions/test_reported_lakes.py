"""Answers over lakes of random jobs, by what their events report, against the rows themselves."""

import time
from collections import Counter
from collections.abc import Callable

import pytest

from fixtures.stores import SharedStore
from fixtures.versions_server.events import LAKE
from fixtures.versions_server.server import Server, running
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import Reading, strong, weak
from strandline.errors import RefusedError
from strandline.runtime.coordinator import Intervals, attend
from worlds.barriers.reported import Lake, history, make_lake

STEPS = 40
SEEDS = [
    pytest.param(range(12), id="12 lakes"),
    pytest.param(range(12, 150), id="150 lakes", marks=pytest.mark.slow),
    pytest.param(range(3000), id="3,000 lakes", marks=pytest.mark.soak),
]
States = dict[tuple[str, int], Counter[int]]


def named(name: str) -> Table:
    """The table's full name."""
    return LAKE, name


def note_states(model: Model, lake: Lake, states: States) -> None:
    """Note the rows of the base tables at each barrier: they never change."""
    for base in lake.bases:
        done = model.done.get(named(base))
        if done is None:
            continue
        for barrier in done.order:
            for candidate in done.candidates(barrier):
                rows = lake.tables[base].snapshots[candidate.snapshot].rows
                assert states.setdefault((base, barrier), rows) == rows, f"{base} at {barrier}"


def check(lake: Lake, states: States, readings: list[Reading]) -> int:
    """Assert that readings show one barrier and its rows; return how many were derived tables."""
    assert len({reading.barrier for reading in readings}) <= 1
    derived = 0
    for reading in readings:
        name = reading.table[1]
        snapshot = lake.tables[name].snapshots[reading.snapshot]
        bases = {base: states[base, reading.barrier] for base in lake.bases_of(name)}
        if not snapshot.is_corrected:
            assert snapshot.rows == lake.expected(name, bases), str(reading)
            derived += name not in lake.bases
    return derived


def ask(
    answer: Callable[[Model, list[Table]], list[Reading]], model: Model, names: list[str]
) -> list[Reading]:
    """Return the readings; none where the question is refused."""
    try:
        return answer(model, [named(name) for name in names])
    except RefusedError:
        return []


def play(server: Server, lake: Lake) -> int:
    """Let a lake live, and check every answer; return how many derived tables were answered."""
    states: States = {}
    answered: dict[str, int] = {}
    retired = checked = 0
    for event in history(lake, STEPS):
        server.post(event)
        for job in lake.retired[retired:]:
            server.client.delete(f"/unregister/{job}")
            answered.clear()
        retired = len(lake.retired)
        if len(lake.bases) > 1 and lake.random.random() < 0.5:
            intervals = Intervals(barrier=0, resume=10**9)
            attend(server.engine, server.follower, intervals, time.time())
        with server.follower.model() as model:
            note_states(model, lake, states)
            for name in lake.tables:
                alone = ask(strong, model, [name])
                assert alone or name not in answered, f"{name} turned into none"
                for reading in alone:
                    assert reading.barrier >= answered.get(name, 0), f"{name} went back"
                    answered[name] = reading.barrier
                checked += check(lake, states, alone)
            for _ in range(3):
                most = min(len(lake.tables), lake.random.randint(2, 5))
                names = lake.random.sample(sorted(lake.tables), most)
                strongly, weakly = ask(strong, model, names), ask(weak, model, names)
                checked += check(lake, states, strongly) + check(lake, states, weakly)
                for one, other in zip(strongly, weakly, strict=False):
                    assert one.barrier <= other.barrier
    return checked


@pytest.mark.parametrize("seeds", SEEDS)
def test_answers_over_a_lake_show_the_rows_of_their_barrier(
    shared_sqlite: SharedStore, seeds: range
) -> None:
    """Streams, batch runs and mishaps as events tell of them: no strong or weak answer is wrong."""
    checked = 0
    for seed in seeds:
        lake = make_lake(seed)
        try:
            with running(shared_sqlite.engine()) as server:
                checked += play(server, lake)
        except AssertionError as error:
            raise AssertionError(
                f"lake {seed} ({', '.join(sorted(lake.faults))}): {error}"
            ) from error
        finally:
            shared_sqlite.empty()
    assert checked > 20 * len(seeds)
