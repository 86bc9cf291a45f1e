"""After a rollback plan and a replay of the base tables all is as if it had never gone wrong.

Incremental and full alike.
"""

from collections.abc import Collection
from random import Random

import pytest
from msgspec import structs

from strandline.core.versions.apply import apply
from strandline.core.versions.facts import Fact, RunStarted, Table
from strandline.core.versions.model import Model
from strandline.core.versions.rollback import Plan, plan
from strandline.core.versions.rollback_statements import StoredTable, clear, restore
from strandline.errors import RefusedError
from worlds.barriers.history import Worker, World, commit, derived, recomputed, small_world, table
from worlds.barriers.history import history as told_of
from worlds.barriers.oracle import Oracle
from worlds.barriers.running import Outcome, deliver, play, strong_of
from worlds.barriers.sizes import each_size


def went_wrong(seed: int) -> tuple[World, Model, Worker, int] | None:
    """A history in which one job computes nonsense from some barrier on.

    None where it committed nothing.
    """
    world, model, oracle = small_world(Random(seed)), Model(), Oracle()
    for fact in told_of(world, 25):
        deliver(fact, model, oracle)
    for worker in world.workers:
        for fact in all_started(worker):
            apply(model, fact)
    wrong = next((worker for worker in world.workers if world.truth[worker.writes]), None)
    if wrong is None:
        return None
    barrier = world.random.choice(sorted(world.truth[wrong.writes]))
    for later in [b for b in world.truth[wrong.writes] if b >= barrier]:
        world.content[world.truth[wrong.writes][later]] ^= 1
    for worker in world.workers:
        if worker is not wrong:
            compute_again(world, worker)
    return world, model, wrong, barrier


def all_started(worker: Worker) -> list[Fact]:
    """Every job runs once more, so that the collector knows all of them."""
    worker.run, worker.state = worker.run + 1, "running"
    run = f"{worker.job[1]}-run{worker.run}"
    return [RunStarted(worker.job, run, 1e6, "bank", tuple(worker.reads), (worker.writes,))]


def compute_again(world: World, worker: Worker) -> None:
    """The content that a job made of what it read, wrong or not."""
    for barrier, snapshot in world.truth[worker.writes].items():
        inputs = [world.truth[source].get(barrier) for source in worker.reads]
        if None not in inputs:
            world.content[snapshot] = derived(
                worker, [world.content[one] for one in inputs if one is not None]
            )


def carry_out(world: World, wanted: Plan, tables: Collection[Table]) -> None:
    """Cut the tables and the jobs' checkpoints back, then let every job go on until nothing is left to do."""
    back = wanted.barrier or 0
    world.rollbacks += 1
    for worker in world.workers:
        if worker.writes in tables:
            world.truth[worker.writes] = {
                b: s for b, s in world.truth[worker.writes].items() if b <= back
            }
            worker.position, worker.head = back, world.truth[worker.writes].get(back)
    for worker in world.workers:
        before = -1
        while worker.position != before:
            before = worker.position
            commit(world, worker)


def nonsense(world: World) -> list[tuple[Table, int]]:
    """Tables and barriers whose content is not what the base tables of that barrier come to."""
    return [
        (one, barrier)
        for one, truth in world.truth.items()
        for barrier, snapshot in truth.items()
        if complete_above(world, one, barrier)
        and world.content[snapshot] != recomputed(world, one, barrier)
    ]


def complete_above(world: World, one: Table, barrier: int) -> bool:
    """Return true if all upstream tables still have the barrier."""
    worker = next((worker for worker in world.workers if worker.writes == one), None)
    if worker is None:
        return barrier in world.truth[one]
    return all(complete_above(world, source, barrier) for source in worker.reads)


@each_size
def test_rollback_and_replay_remove_all_wrong_content(seeds: range) -> None:
    kinds = []
    for seed in seeds:
        for full in (False, True):
            if (found := went_wrong(seed)) is None:
                continue
            world, model, wrong, barrier = found
            if not model.is_tracked(wrong.writes):
                continue
            lost = dict.fromkeys(model.places, 10**6) if full else {}
            wanted = plan(model, wrong.writes, barrier - 1, retained=lost)
            kinds.append(wanted.kind)
            carry_out(world, wanted, wanted.tables)

            assert nonsense(world) == [], f"history {seed}: {wanted.kind}"
    assert kinds.count("incremental") > len(seeds) / 10
    assert kinds.count("full") > len(seeds) / 2


def test_control_rolling_back_one_table_leaves_wrong_content_downstream() -> None:
    left = 0
    for seed in range(150):
        if (found := went_wrong(seed)) is not None and found[1].is_tracked(found[2].writes):
            world, model, wrong, barrier = found
            carry_out(world, plan(model, wrong.writes, barrier - 1), [wrong.writes])
            left += bool(nonsense(world))
    assert left > 10


def test_plan_targets_existing_snapshots_and_retained_state() -> None:
    for seed in range(150):
        _, model = play(seed, lambda *_: None)
        for one, done in model.done.items():
            if not model.is_tracked(one) or not done.order:
                continue
            newest = done.order[-1]
            free = plan(model, one, newest)
            if free.barrier is None:
                continue
            gone = {(other, model.done[other].of[free.barrier].snapshot) for other in free.tables}
            without = plan(model, one, newest, exists=lambda t, s, gone=gone: (t, s) not in gone)  # type: ignore[misc]
            state_lost = plan(
                model, one, newest, retained=dict.fromkeys(free.jobs, free.barrier + 1)
            )

            assert without.barrier is None or without.barrier < free.barrier
            assert state_lost.kind == "full" or not free.jobs


def test_replaying_the_whole_log_gives_the_same_answers() -> None:
    for seed in range(100):
        log: list[Fact] = []
        world, model, oracle = small_world(Random(seed)), Model(), Oracle()
        for fact in told_of(world, 25):
            deliver(fact, model, oracle)
            log.append(fact)
        again = Model()
        for fact in log:
            apply(again, fact)

        assert answers(world, again) == answers(world, model), f"history {seed}"


def answers(world: World, model: Model) -> dict[Table, tuple[Outcome, object, object]]:
    """Return the answer about each table."""
    return {
        one: (
            strong_of(model, one),
            model.done[one].order if one in model.done else None,
            model.writer(one),
        )
        for one in world.truth
    }


def test_ids_and_names_cannot_inject_statements_into_a_plan() -> None:
    """A plan is executed literally and contains text from producers."""
    _, model = play(0, lambda *_: None)
    model.called = {one: f"lake.bank.it's`{number}" for number, one in enumerate(model.done)}
    found: dict[str, set[str | None]] = {}
    for snapshot in ("17", "17); DROP TABLE lake.bank.t; --"):
        for done in model.done.values():
            done.of = {
                barrier: structs.replace(one, snapshot=snapshot) for barrier, one in done.of.items()
            }
        steps = plan(model, ("lake", "root0"), model.done["lake", "root0"].order[-1]).steps
        found[snapshot] = {
            dict(step.details).get("sql") for step in steps if step.action == "roll back table"
        }

    safe, hostile = found.values()
    assert hostile == {None}
    assert all("set_current_snapshot('bank.it\\'s`" in str(one) for one in safe)
    assert all("ALTER TABLE lake.bank.`it's``" in str(one) for one in safe)


@pytest.mark.parametrize(
    ("of_format", "restored", "cleared"),
    [
        (
            "iceberg",
            "CALL lake.system.set_current_snapshot('bank.t', 7)",
            "CREATE OR REPLACE TABLE lake.bank.t USING iceberg",
        ),
        (
            "delta",
            "RESTORE TABLE lake.bank.t TO VERSION AS OF 7",
            "CREATE OR REPLACE TABLE lake.bank.t USING delta",
        ),
        (
            "paimon",
            "CALL lake.sys.rollback(table => 'bank.t', version => '7')",
            "TRUNCATE TABLE lake.bank.t",
        ),
        ("hudi", None, None),
    ],
)
def test_plans_speak_the_language_of_the_format(
    of_format: str, restored: str | None, cleared: str | None
) -> None:
    stored = StoredTable("lake.bank.t", of_format)

    assert next(iter(restore(stored, "7", 2)), None) == restored
    assert restore(stored, "7); DROP TABLE t; --", 2) == ()
    assert next(iter(clear(stored, 2)), "").startswith(cleared or "")
    assert bool(clear(stored, 2)) == (cleared is not None)


def test_untracked_table_cannot_be_rolled_back() -> None:
    with pytest.raises(
        RefusedError,
        match="no job that carries barriers writes it, and it is not a base table of a group",
    ):
        plan(Model(), table("nobody"), 1)
