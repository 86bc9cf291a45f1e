"""Old barriers are forgotten without changing answers, pins or decisions."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from random import Random

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.checkpoint import decide
from strandline.core.versions.expirable import pins
from strandline.core.versions.facts import Fact, Job, Table
from strandline.core.versions.model import Model
from worlds.barriers.history import GROUP, history, job, small_world, table
from worlds.barriers.running import strong_of, weak_of
from worlds.barriers.sizes import each_size

SOURCE, MIDDLE, END = table("source"), table("middle"), table("end")
JOBS = {
    job("ingest"): ((), SOURCE),
    job("middle"): ((SOURCE,), MIDDLE),
    job("end"): ((MIDDLE,), END),
}


def stream(barriers: range, jobs: Iterable[Job] = tuple(JOBS)) -> Iterator[Fact]:
    """Every job commits every barrier."""
    for barrier in barriers:
        for one in jobs:
            reads, writes = JOBS[one]
            used = tuple(facts.Used(source, f"{source[1]}{barrier}") for source in reads)
            made = (facts.WrittenSnapshot(writes, f"{writes[1]}{barrier}"),)
            yield facts.BarrierCommitted(
                one, f"run of {one[1]}", GROUP, barrier, barrier, barrier + 0.5, made, used
            )


def played(model: Model, told: Iterator[Fact]) -> Model:
    """The model after these facts."""
    for fact in told:
        apply(model, fact)
    return model


def kept(model: Model) -> dict[Table, tuple[int, int]]:
    """Return the number of barriers held for each table, and the oldest."""
    return {one: (len(done.order), done.order[0]) for one, done in model.done.items()}


def test_running_stream_uses_bounded_memory() -> None:
    model = played(Model(keeps=10), stream(range(1, 5_000)))

    assert all(10 <= held < 31 and oldest > 4_950 for held, oldest in kept(model).values())
    assert {len(done.of) for done in model.done.values()} == {
        held for held, _ in kept(model).values()
    }
    assert 10 <= len(model.group(GROUP).births) < 32
    assert strong_of(model, END) == 4_999


def test_stopped_jobs_barriers_are_kept_until_it_continues() -> None:
    model = played(Model(keeps=10), stream(range(1, 101)))
    apply(model, facts.RunEnded(job("end"), "run of end", 100.9, "COMPLETE"))

    played(model, stream(range(101, 1_001), [job("ingest"), job("middle")]))
    next_one = decide({MIDDLE: model.done[MIDDLE]}, model.places[job("end")].position)
    held = kept(model)
    played(model, stream(range(101, 1_101)))

    assert (next_one.kind, next_one.barrier, next_one.abort[:1]) == (
        "ABORT",
        1_000,
        (101,),
    )  # it catches up
    assert held[MIDDLE][0] > 900
    assert held[MIDDLE][1] <= 91
    assert all(count < 31 for count, _ in kept(model).values())


def test_late_barrier_is_not_mistaken_for_a_new_one() -> None:
    model = played(Model(keeps=10), stream(range(1, 1_001)))

    played(model, stream(range(3, 4)))

    assert strong_of(model, END) == 1_000
    assert model.group(GROUP).first_after(1_000) is None


def test_forgotten_barrier_does_not_return_alone() -> None:
    """A spool sent late must not make a weak answer show that single old barrier."""
    model = played(Model(), stream(range(1, 51), [job("ingest"), job("middle")]))
    apply(model, facts.JobRetired(job("middle"), 51.0, "unregistered"))
    played(model, stream(range(51, 2_000), [job("ingest")]))
    apply(
        model, facts.RunStarted(job("middle"), "another run", 2_001.0, GROUP, (SOURCE,), (MIDDLE,))
    )
    before = weak_of(model, [SOURCE, MIDDLE])

    played(model, stream(range(6, 7), [job("ingest")]))

    assert kept(model)[SOURCE][1] > 1_000
    assert (before, weak_of(model, [SOURCE, MIDDLE])) == ("no_version", "no_version")
    played(model, stream(range(2_000, 2_001), [job("ingest"), job("middle")]))
    assert weak_of(model, [SOURCE, MIDDLE]) == {SOURCE: 2_000, MIDDLE: 2_000}


@each_size
def test_random_histories_match_a_model_that_forgets_nothing(seeds: range) -> None:
    """Jobs first reported after their barriers were forgotten are exempt."""
    forgot = compared = 0
    for seed in seeds:
        world, all_of_it, some = (
            small_world(Random(seed)),
            Model(caught_up=2),
            Model(keeps=2, caught_up=2),
        )
        for fact in history(world, 40):
            apply(all_of_it, fact)
            apply(some, fact)
            tables = sorted(world.truth)
            assert strongs(some, tables) == strongs(all_of_it, tables), f"history {seed}"
            if not reported_late(some):
                assert answers(some, tables) == answers(all_of_it, tables), f"history {seed}"
                for pair in combinations(tables, 2):
                    assert weakly_alike(some, all_of_it, list(pair)), f"history {seed}: {pair}"
                forgot += held(some) < held(all_of_it)
            compared += 1
    assert forgot > compared / 10  # otherwise this test says nothing


def reported_late(model: Model) -> bool:
    """Return true if a job or a table is at a barrier that is forgotten already."""
    forgotten = model.group(GROUP).forgotten
    positions = [place.position for place in model.places.values()]
    positions += [done.last for done in model.done.values()]
    return any(position is not None and position < forgotten for position in positions)


def weakly_alike(some: Model, all_of_it: Model, pair: list[Table]) -> bool:
    """Return true if both say the same, or if the newest common barrier is forgotten.

    Of a job that came back after it was retired.
    """
    one, other = weak_of(some, pair), weak_of(all_of_it, pair)
    forgotten = some.group(GROUP).forgotten
    return one == other or (
        one == "no_version" and isinstance(other, dict) and max(other.values()) < forgotten
    )


def held(model: Model) -> int:
    """Count the completed barriers that are held."""
    return sum(len(done.order) for done in model.done.values())


def strongs(model: Model, tables: list[Table]) -> list[object]:
    """Every strong answer."""
    return [strong_of(model, name) for name in tables]


def answers(model: Model, tables: list[Table]) -> tuple[object, ...]:
    """Every decision, every pin but those of the whole group's version."""
    pinned = [
        (pin.snapshot, pin.reason)
        for name in tables
        if name in model.done
        for pin in pins(model, name, 1)
        if "whole group" not in pin.reason  # a barrier that is forgotten is not answered
    ]
    return decided(model), pinned


def decided(model: Model) -> dict[Job, object]:
    """Return the decision for each started job before its next checkpoint."""
    found: dict[Job, object] = {}
    for name, place in model.places.items():
        if place.position is not None:
            sources = {
                source: model.done[source]
                for source in model.links(place) & place.reads - place.writes
            }
            found[name] = decide(sources, place.position)
    return found
