"""The load simulation: its shares add up, and it names bottlenecks and missing measurements."""

import pytest

from bench import report, simulate
from bench.simulate import COSTS, Plan, first_full, shares

# An event takes 500 us in all, 100 us of them in the database, and leaves 2,000 bytes and 1,000 in
# the log; a commit takes 40 us to follow.
WORLD = {
    "ingest.topic.postgres.cpu": 500.0,
    "ingest.bytes.postgres.apply": 60.0,
    "ingest.bytes.postgres.raw": 30.0,
    "ingest.bytes.postgres.background": 10.0,
    "ingest.stored.postgres": 2_000.0,
    "ingest.written.postgres.wal": 1_000.0,
    "versions.upkeep.1000_tables": 40.0,
}
PLAN = Plan(
    event_bytes=10_000, consumer_cores=4, database_cores=8, database_bytes=100e6, disk_bytes=1e12, retention_days=1,
    barrier_share=0.5, consumers=4, servers=2, max_connections=100, network_bytes=1e9,
)  # fmt: skip


def test_shares_of_a_load_match_a_manual_sum() -> None:
    found = {one.resource: round(one.share, 6) for one in shares(10_000, WORLD, PLAN)}

    assert found == {
        "consumers": 1.25,  # 10,000 x 500 us are 5 cores, of 4
        "database cores": 0.125,  # 1 core of 8
        "database disk, writing": 0.3,  # 20 MB of rows and 10 MB of log, of 100 MB a second
        "database disk, size": 1.728,  # 1.728 TB a day of 1 TB
        "follower of a server": 0.2,  # 5,000 commits x 40 us of one thread
        "connections": 1.2,  # 4 x 15 and 2 x 30 of 100
        "network": 0.1,
    }


@pytest.mark.parametrize(
    ("changed", "first"),
    [
        ({}, ("database disk, size", 5_787)),
        ({"disk_bytes": 1e15}, ("consumers", 8_000)),
        (
            {"disk_bytes": 1e15, "consumer_cores": 64, "database_bytes": 1e9},
            ("follower of a server", 50_000),
        ),
    ],
)
def test_first_saturated_resource_is_named_with_its_load(
    changed: dict[str, float], first: tuple[str, int]
) -> None:
    resource, rate = first_full(WORLD, Plan(**(vars(PLAN) | changed)))

    assert (resource, round(rate)) == first


def test_costs_that_were_not_measured_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulate"])
    monkeypatch.setattr(
        report, "read", lambda: {"rows": [{"name": "versions.upkeep.1000_tables", "value": 40.0}]}
    )

    assert simulate.main() == 1
    assert capsys.readouterr().err == "measure first: python -m bench ingest\n"


def test_every_cost_comes_from_a_benchmark() -> None:
    assert COSTS.keys() == WORLD.keys()
