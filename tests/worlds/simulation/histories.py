"""Events by a seed: runs that start and end in any order, datasets with links, snapshots and columns, and no two at one time."""

from datetime import datetime, timedelta
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from strandline.core.openlineage.facets import content_hash
from worlds.builders import LONG_AGO, dataset, encode, event, run_id, symlink

Json = dict[str, Any]
KINDS = ("START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER", None)
RUNS = (1, 2, 3, 7, 8)
NAMES = ("/a", "/b", "/c", "/d")
TEN_YEARS = 10 * 365 * 86_400
WORLDS = 10  # of one history: what is right in the end is found out once for all of them
LONG = 20  # of so many histories one is long: short ones show more faults a second


class History(NamedTuple):
    """The events in the worlds of one number, and the number of steps."""

    number: int
    arrivals: list[tuple[Json, datetime]]
    steps: int


@lru_cache(maxsize=1)
def history_of(number: int, now: datetime) -> History:
    """The history that the worlds of a number share: those of WORLDS seeds, one after the other."""
    is_long = number % LONG == 0
    chance = Random(f"history {number}")
    return History(
        number, history(chance, now, *((6, 26) if is_long else (1, 5))), 45 if is_long else 9
    )


@lru_cache(maxsize=1)
def bodies_of(number: int, now: datetime) -> dict[bytes, Json]:
    """Its events by the hash of their content."""
    return {content_hash(encode(one)): one for one, _ in history_of(number, now).arrivals}


def history(
    chance: Random, now: datetime, least: int = 6, most: int = 26
) -> list[tuple[Json, datetime]]:
    """Events with the time at which each was received, whoever received it."""
    skew = chance.choice((0, 0, 0, TEN_YEARS, -TEN_YEARS))  # of the producers' clock
    found = []
    for index in range(chance.randint(least, most)):
        run = chance.choice(RUNS)
        one = event(
            chance.choice(KINDS),
            run=run,
            job="one" if run % 2 else "two",  # a run is of one job
            seconds=index + skew,
            inputs=_datasets(chance),
            outputs=_datasets(chance),
            facets=_run_facets(chance, run),
            job_facets={"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}
            if chance.random() < 0.4
            else {},
        )
        found.append((one, chance.choice((now, now, now, LONG_AGO, now + timedelta(days=3650)))))
    return found


def received(at: datetime, now: datetime) -> datetime:
    """Return the collector's time for the writing of a record.

    No more than a day ahead of its clock.
    """
    return min(at, now + timedelta(days=1))


def _datasets(chance: Random) -> list[Json]:
    names = chance.sample(NAMES, chance.choice((0, 1, 1, 2)))
    return [_dataset(chance, name) for name in names]


def _dataset(chance: Random, name: str) -> Json:
    facets: Json = {}
    if chance.random() < 0.15:
        facets["symlinks"] = symlink(
            chance.choice(NAMES), "file", chance.choice(("TABLE", "LOCATION"))
        )
    if chance.random() < 0.3:
        origin = {"namespace": "file", "name": chance.choice(NAMES), "field": "c"}
        facets["columnLineage"] = {"fields": {"c": {"inputFields": [origin]}}}
    if chance.random() < 0.3:
        facets["documentation"] = {"description": f"words {chance.randint(1, 3)} " * 20}
    own = {}
    if chance.random() < 0.5:
        own = {
            "strandline_snapshot": {
                "snapshotId": chance.choice("123"),
                "observed": chance.random() < 0.5,
            }
        }
    return dataset(name, "file", own, **facets)


def _run_facets(chance: Random, run: int) -> Json:
    facets: Json = {}
    if chance.random() < 0.3:
        above = 9 if run == 8 else 8 if run == 7 else 7
        facets["parent"] = {
            "run": {"runId": run_id(above)},
            "job": {"namespace": "tests", "name": f"app{above}"},
        }
    if chance.random() < 0.2:
        facets["strandline_heartbeat"] = {"timeoutSeconds": 36_000}
    if chance.random() < 0.3:
        phase = chance.choice(("committed", "committed", "skipped"))
        facets["strandline_barrier"] = {
            "barrierId": chance.randint(1, 2),
            "queryId": run_id(90 + run),
            "phase": phase,
        }
    return facets
