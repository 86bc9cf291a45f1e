"""What a closure on Spark finds is what a plain search finds, on random graphs with hubs and circles."""

from __future__ import annotations

import random
import re
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from strandline.analysis import closure as closing
from strandline.analysis.closure import Closure, Limits, closure

pytestmark = pytest.mark.spark
Arc = tuple[int, int]
Pairs = set[tuple[int, int, int]]
LIMITS = Limits(partitions=2)
LARGE = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"}  # as if all were large


@pytest.fixture
def spark(lake: Any, tmp_path: Path) -> Any:
    """The session of all tests, with a folder for checkpoints."""
    lake.sparkContext.setCheckpointDir(str(tmp_path / "checkpoints"))
    return lake


def graph(seed: int) -> list[Arc]:
    """A chain, a circle, a hub that all lead into and out of, arcs at random, and a node that makes itself."""
    chance = random.Random(seed)
    size = chance.randint(8, 14)
    chain = [(number, number + 1) for number in range(100, 100 + chance.randint(2, 4))]
    circle = [(number, (number + 1) % 5) for number in range(5)]
    hub = [(chance.randrange(size), 50) for _ in range(12)] + [(50, chance.randrange(size)) for _ in range(12)]
    others = [(chance.randrange(size), chance.randrange(size)) for _ in range(size)]
    every = [*chain, *circle, *hub, *others, (chance.randrange(size), 100), (7, 7)]
    return [(1000 * seed + source, 1000 * seed + target) for source, target in every]


def searched(arcs: list[Arc], depth: int | None = None) -> Pairs:
    """Every node's own search, breadth first."""
    onwards: dict[int, set[int]] = {}
    for source, target in arcs:
        onwards.setdefault(source, set()).add(target)
    found = set()
    for start in {node for arc in arcs for node in arc}:
        distances, waiting = {start: 0}, deque([start])
        while waiting:
            node = waiting.popleft()
            for other in onwards.get(node, ()):
                if other not in distances and distances[node] != depth:
                    distances[other] = distances[node] + 1
                    waiting.append(other)
        found |= {(start, node, distance) for node, distance in distances.items() if node != start}
    return found


def closed(spark: Any, arcs: list[Arc], limits: Limits, within: Pairs | None = None) -> Closure:
    frame = spark.createDataFrame(arcs, "source bigint, target bigint")
    nodes = sorted({node for arc in arcs for node in arc})
    starts = spark.createDataFrame([(node,) for node in nodes], "start bigint")
    allowed = (
        None if within is None else spark.createDataFrame(sorted(within), "start bigint, node bigint, distance int")
    )
    return closure(frame, starts, limits, allowed)


def pairs(found: Closure) -> Pairs:
    rows = [tuple(row) for row in found.pairs.select("start", "node", "distance").collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_it_finds_what_a_search_finds(spark: Any) -> None:
    """In forty graphs side by side."""
    arcs = [arc for seed in range(40) for arc in graph(seed)]

    found = closed(spark, arcs, LIMITS)

    assert found.truncated_by is None
    assert pairs(found) == searched(arcs)
    assert found.depth == max(distance for _, _, distance in pairs(found))


def test_a_depth_cuts_off_what_is_farther_and_says_so(spark: Any) -> None:
    arcs = graph(5)
    whole = searched(arcs)
    longest = max(distance for _, _, distance in whole)

    near, all_of_it = (closed(spark, arcs, LIMITS._replace(depth=depth)) for depth in (2, longest))

    assert pairs(near) == searched(arcs, 2)
    assert near.outcome == {"complete": False, "truncatedBy": "depth", "depth": 2}
    assert pairs(all_of_it) == whole
    assert all_of_it.outcome == {"complete": True, "truncatedBy": None, "depth": longest}


def test_a_round_that_would_find_too_much_is_not_begun(spark: Any) -> None:
    """A hub of 200 by 200: its second round alone has 40,000 pairs."""
    arcs = [(number, 0) for number in range(1, 201)] + [(0, number) for number in range(1001, 1201)]

    found = closed(spark, arcs, LIMITS._replace(most_pairs=10_000))

    assert found.outcome == {"complete": False, "truncatedBy": "pairs", "depth": 1}
    assert pairs(found) == {(source, target, 1) for source, target in arcs}


def test_only_pairs_that_may_be_found_are(spark: Any) -> None:
    arcs = [(1, 2), (2, 3), (3, 4), (1, 3)]

    found = closed(spark, arcs, LIMITS, {(1, 3, 0), (1, 4, 0), (2, 3, 0)})

    assert pairs(found) == {(1, 3, 1), (1, 4, 2), (2, 3, 1)}


def test_what_was_found_is_not_shuffled_again(spark: Any) -> None:
    """A round compares what it reaches with all rounds before it, and shuffles what is new alone: to the arcs, and back."""
    arcs = spark.createDataFrame(graph(0), "source bigint, target bigint")
    starts = spark.range(20).selectExpr("id AS start", "id AS node", "0 AS distance")
    with closing._static_plans(spark):
        onwards = arcs.repartition(2, "source").checkpoint()
        levels = [closing._placed(starts, LIMITS).dropDuplicates(closing.KEY).checkpoint()]
        for distance in (1, 2):
            levels.append(
                closing._fresh(closing._step(levels[-1], onwards, distance, LIMITS), levels, None).checkpoint()
            )
    before = {name: spark.conf.get(name) for name in LARGE}

    for name, value in LARGE.items():
        spark.conf.set(name, value)
    try:
        fresh = closing._fresh(closing._step(levels[-1], onwards, 3, LIMITS), levels, None)
        plan = fresh._jdf.queryExecution().executedPlan().toString()
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)

    shuffled = [re.findall(r"hashpartitioning.(\w+)", line)[0] for line in plan.splitlines() if "Exchange hash" in line]
    assert plan.count("Scan ExistingRDD") == 5
    assert shuffled == ["start", "node"]
