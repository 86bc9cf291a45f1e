"""What a load takes: measured costs of an event, a commit and a row, put against the cores, disks and connections of a plan.

No measurement of its own: costs come from `bench/results.json` (each is printed with its value and when it was measured),
and what cannot be measured here stands in `Plan`, named as an assumption. Every resource's share is linear in the load
but the follower's, which is one thread of every server and cannot be split: so the curve ends where the first one is full.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bench import report

DAY = 86_400
RATES = (1_000, 10_000, 100_000, 1_000_000)
CONNECTIONS = {
    "consume": 15,
    "serve": 30,
}  # at most: a pool of 5 and 10 more; a server's writer has one of its own
# Figure of bench/results.json -> the benchmark that measures it.
COSTS = {
    "ingest.topic.postgres.cpu": "ingest",
    "ingest.bytes.postgres.apply": "ingest",
    "ingest.bytes.postgres.raw": "ingest",
    "ingest.bytes.postgres.background": "ingest",
    "ingest.stored.postgres": "ingest",
    "ingest.written.postgres.wal": "ingest",
    "versions.upkeep.1000_tables": "versions",
}


@dataclass(frozen=True)
class Plan:
    """Assumptions, none of them measured.

    The hardware, and what share of the events commits a barrier.
    """

    event_bytes: float = 17_000
    consumer_cores: int = 8
    database_cores: int = 32
    database_bytes: float = 300e6  # a second, to its disk
    disk_bytes: float = 10e12
    retention_days: float = 7
    barrier_share: float = 0.1
    consumers: int = 8
    servers: int = 2
    max_connections: int = 500
    network_bytes: float = 1.25e9  # a second: ten gigabits


class Share(NamedTuple):
    """How much of a resource a load takes: 1 is all of it. relief: what helps when it is full."""

    resource: str
    share: float
    relief: str


def shares(rate: float, costs: Mapping[str, float], plan: Plan) -> Iterator[Share]:
    """What each resource has to bear at so many events a second, with everything in one store."""
    whole = costs["ingest.topic.postgres.cpu"]
    stages = ("apply", "raw", "background")
    database = min(whole, sum(costs[f"ingest.bytes.postgres.{stage}"] for stage in stages))
    micros = rate / 1e6
    yield Share(
        "consumers",
        micros * whole / plan.consumer_cores,
        "more consumers, up to the topic's partitions",
    )
    yield Share(
        "database cores",
        micros * database / plan.database_cores,
        "archive --from-topic: no raw event in the store",
    )
    stored = costs["ingest.stored.postgres"]
    yield Share(
        "database disk, writing",
        rate * (stored + costs["ingest.written.postgres.wal"]) / plan.database_bytes,
        "archive --from-topic",
    )
    kept = rate * stored * DAY * plan.retention_days
    yield Share(
        "database disk, size", kept / plan.disk_bytes, "strandline archive; a shorter retention"
    )
    follower = micros * plan.barrier_share * costs["versions.upkeep.1000_tables"]
    yield Share(
        "follower of a server", follower, "fewer barriers; a collector for some of the groups each"
    )
    opened = plan.consumers * CONNECTIONS["consume"] + plan.servers * CONNECTIONS["serve"]
    yield Share("connections", opened / plan.max_connections, "a greater max_connections")
    yield Share(
        "network",
        rate * plan.event_bytes / plan.network_bytes,
        "compression in the producer; several brokers",
    )


def first_full(costs: Mapping[str, float], plan: Plan) -> tuple[str, float]:
    """The resource that is full first, and at how many events a second."""
    growing = [
        (share.resource, 1 / share.share)
        for share in shares(1, costs, plan)
        if share.share > 0 and share.resource != "connections"
    ]
    return min(growing, key=lambda one: one[1])


def curve(costs: Mapping[str, float], plan: Plan) -> Iterator[str]:
    """A line a load: every share, and what is full first."""
    for rate in RATES:
        found = sorted(shares(rate, costs, plan), key=lambda one: -one.share)
        yield f"{rate:>9,} events/s: " + ", ".join(
            f"{one.resource} {one.share:.2f}" for one in found
        )
        worst = found[0]
        if worst.share > 1:
            yield f"{'':>9} {worst.resource} {worst.share:.1f} times over: {worst.relief}"


def measured() -> dict[str, float]:
    """The costs that were measured on this machine."""
    return {row["name"]: row["value"] for row in report.read()["rows"] if row["name"] in COSTS}


def main() -> int:
    """Print the curve; 1 with what is to be measured first, where a cost is missing."""
    parser = argparse.ArgumentParser("bench.simulate", description=__doc__)
    for name, value in vars(Plan()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    plan = Plan(**vars(parser.parse_args()))
    costs = measured()
    if missing := sorted({COSTS[name] for name in COSTS.keys() - costs.keys()}):
        sys.stderr.write(f"measure first: python -m bench {' '.join(missing)}\n")
        return 1
    document = report.read()
    lines = [f"measured until {document['at']} on {document['machine']}"]
    lines += [f"  {name}: {value:g}" for name, value in sorted(costs.items())]
    lines += ["assumed", *(f"  {name}: {value:g}" for name, value in vars(plan).items())]
    resource, rate = first_full(costs, plan)
    sys.stdout.write(
        "\n".join([*lines, *curve(costs, plan), f"first full: {resource}, at {rate:,.0f} events/s"])
        + "\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
