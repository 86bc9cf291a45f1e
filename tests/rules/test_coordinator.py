"""Servers cut barriers, jobs commit, both crash: never two snapshots for one barrier."""

import pytest

from strandline.core.versions.facts import BarrierCommitted, RolledBack, RootsCut
from worlds.barriers.coordinating import faults, schedule

SHORT = [
    pytest.param(range(1_000), id="1,000"),
    pytest.param(range(1_000, 6_000), id="6,000", marks=pytest.mark.slow),
]
LONG = [
    pytest.param(range(start, start + 100_000), id=f"{start:,} on", marks=pytest.mark.soak)
    for start in range(0, 1_000_000, 100_000)
]


@pytest.mark.parametrize("seeds", SHORT + LONG)
def test_no_schedule_makes_two_snapshots_for_one_barrier_and_generation(seeds: range) -> None:
    found = {seed: wrong for seed in seeds if (wrong := faults(schedule(seed)))}

    assert found == {}


@pytest.mark.parametrize(
    ("without", "why"),
    [
        ("locked", "two servers cut the same barrier through different snapshots"),
        ("looks", "a job that died before its checkpoint writes its table again"),
        ("aligned", "a job takes the newest snapshot of each input"),
        ("dated", "events of before a rollback are taken after it"),
    ],
)
def test_control_each_missing_protection_breaks_a_schedule(without: str, why: str) -> None:
    assert any(faults(schedule(seed, without)) for seed in range(3_000)), why


def test_schedules_cover_every_promised_case() -> None:
    told = [fact for seed in range(500) for fact in schedule(seed).log]
    kinds = [type(fact) for fact in told]

    assert kinds.count(RootsCut) > 500
    assert kinds.count(BarrierCommitted) > 500
    assert kinds.count(RolledBack) > 30
