"""Expiry names an unpinned prefix only: lease holders and stopped jobs can always read."""

from collections.abc import Callable, Sequence
from random import Random

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.expirable import Pin, expiry, main_ancestry, pins
from strandline.core.versions.facts import Job, Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong
from worlds.barriers.history import Worker, World, job, next_barrier, table
from worlds.barriers.oracle import Oracle
from worlds.barriers.running import play, strong_of
from worlds.barriers.sizes import each_size

Keep = Callable[[Model, Table], Sequence[Pin]]
KEPT_BARRIERS = 2


def pinned(model: Model, one: Table) -> Sequence[Pin]:
    """Return the product's pins."""
    return pins(model, one, KEPT_BARRIERS)


def missing_reads(seed: int, keep: Keep) -> int:
    """Expire all that may go after each fact.

    How many reads by leases, by strong answers and by jobs fail then.
    """
    gone: dict[Table, set[str]] = {}
    leases: list[dict[Table, str]] = []
    too_late: dict[Job, set[str]] = {}
    found = 0
    random = Random(seed)

    def expire(world: World, model: Model, _: Oracle) -> None:
        nonlocal found
        if (
            world.rollbacks
        ):  # goes back behind what is kept, and is planned with what still exists: test_rollback.py
            return
        for one in world.truth:
            claimed = [Pin(lease[one], "lease") for lease in leases if one in lease]
            told = expiry(ancestry(world, one), [*keep(model, one), *claimed])
            gone.setdefault(one, set()).update(told.expirable)
        if random.random() < 0.2:
            leases.append(strong_readings(world, model))
        del leases[:-3]  # leases end
        wanted = [(one, snapshot) for lease in leases for one, snapshot in lease.items()]
        wanted += list(strong_readings(world, model).items())
        found += sum(snapshot in gone[one] for one, snapshot in wanted)
        for worker in world.workers:
            place = model.places.get(worker.job)
            if (
                place is None or place.position is None
            ):  # what went before the collector knew of a job, went
                too_late[worker.job] = set().union(*gone.values())
            else:
                before = too_late.setdefault(worker.job, set())
                found += sum(
                    snapshot in gone[one] - before
                    for one, snapshot in next_reads(world, model, worker)
                )

    play(seed, expire)
    return found


def ancestry(world: World, one: Table) -> list[str]:
    """The snapshots of a table, oldest first."""
    return list(dict.fromkeys(world.truth[one][barrier] for barrier in sorted(world.truth[one])))


def strong_readings(world: World, model: Model) -> dict[Table, str]:
    """Return the snapshot that a strong reader of each table gets."""
    tables = [one for one in world.truth if isinstance(strong_of(model, one), int)]
    return {one: strong(model, [one])[0].snapshot for one in tables}


def next_reads(world: World, model: Model, worker: Worker) -> list[tuple[Table, str]]:
    """Return the next reads of jobs with a place, running or stopped, and everything after."""
    barrier = next_barrier(world, worker)
    if barrier is None or worker.state == "retired":
        return []
    sources = [source for source in worker.reads if model.is_tracked(source)]
    return [
        (source, world.truth[source][b])
        for source in sources
        for b in world.truth[source]
        if b >= barrier
    ]


@each_size
def test_lease_holders_strong_readers_and_stopped_jobs_can_read(seeds: range) -> None:
    assert {seed: count for seed in seeds if (count := missing_reads(seed, pinned))} == {}


def test_control_unpinned_stopped_jobs_lose_their_snapshots() -> None:
    def without_places(model: Model, one: Table) -> Sequence[Pin]:
        return [pin for pin in pinned(model, one) if not pin.reason.startswith("job ")]

    assert sum(missing_reads(seed, without_places) for seed in range(150)) > 20


def test_control_keeping_only_last_barriers_breaks_strong_readers() -> None:
    def last_barriers(model: Model, one: Table) -> Sequence[Pin]:
        return [pin for pin in pinned(model, one) if "rollback" in pin.reason]

    assert sum(missing_reads(seed, last_barriers) for seed in range(150)) > 20


def test_a_table_keeps_the_snapshots_of_the_version_of_its_whole_group() -> None:
    root, early, late = table("root"), table("early"), table("late")
    model = Model()
    apply(model, facts.GroupDeclared("bank", (root,), 0.0))
    cut(model, root, 1, 2)
    commit(model, "one", early, 1, 2)
    cut(model, root, 3, 4)
    commit(model, "two", late, 1, 3, 4)  # what it committed at barrier 2 is on its way

    pinned_so = {(pin.snapshot, pin.reason) for pin in pins(model, late, 1)}

    assert strong_of(model, late) == 4
    assert strong(model, [early, late])[1].snapshot == "two1"
    assert ("two1", "barrier 1 is the newest that its whole group completed") in pinned_so


def cut(model: Model, root: Table, *barriers: int) -> None:
    """Cut barriers through the one base table of the group."""
    for barrier in barriers:
        apply(
            model,
            facts.RootsCut(
                "bank", barrier, (facts.WrittenSnapshot(root, f"r{barrier}"),), float(barrier)
            ),
        )


def commit(model: Model, name: str, made: Table, *barriers: int) -> None:
    """Let a job that reads the base table commit barriers."""
    for barrier in barriers:
        at, used = barrier + 0.5, (facts.Used(table("root"), f"r{barrier}"),)
        snapshot = (facts.WrittenSnapshot(made, f"{name}{barrier}"),)
        apply(
            model,
            facts.BarrierCommitted(
                job(name), f"run {name}", "bank", barrier, at, at, snapshot, used
            ),
        )


def test_every_kept_snapshot_has_a_reason() -> None:
    found = expiry(
        ["s1", "s2", "s3", "s4"],
        [Pin("s2", "lease 7 of report"), Pin("s3", "job a runs at barrier 3")],
        ["x"],
    )

    assert found.expirable == ["s1"]
    assert [(one.snapshot, one.reasons) for one in found.kept()] == [
        ("s2", ("lease 7 of report",)),
        ("s3", ("job a runs at barrier 3",)),
        ("s4", ("the latest snapshot",)),
        ("x", ("not in the main ancestry: nothing is known of its readers",)),
    ]
    assert found.kept_count == 4


def test_unknown_pinned_snapshot_keeps_everything() -> None:
    assert expiry(["s1", "s2"], [Pin("elsewhere", "lease 1")]).expirable == []


def test_main_ancestry_ends_at_the_head_and_excludes_branches() -> None:
    parents = {"a": "", "b": "a", "c": "b", "branch": "a"}

    assert main_ancestry(parents, "c") == (["a", "b", "c"], ["branch"])
    assert main_ancestry({"a": "b", "b": "a", "c": "x"}, "a") == (["b", "a"], ["c"])
