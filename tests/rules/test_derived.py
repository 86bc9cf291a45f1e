"""Derived barriers of plain jobs match the definition and the true contents, with controls."""

from random import Random

import pytest

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.facts import Fact, GroupDeclared, RunStarted, Table
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import Reading, held_by, strong, weak
from strandline.errors import RefusedError
from worlds.barriers.derivation import Rule, of_all
from worlds.barriers.history import job, table
from worlds.barriers.plain import PlainWorld, plain_history, plain_world, recomputed
from worlds.barriers.sizes import each_size

STEPS = 60


def readings(model: Model, tables: list[Table], consistency: str) -> list[Reading]:
    """The answer, empty where it is refused."""
    try:
        return strong(model, tables) if consistency == "strong" else weak(model, tables)
    except RefusedError:
        return []


@each_size
def test_plain_jobs_answers_match_the_base_tables(seeds: range) -> None:
    """Strong and weak show one barrier and its true content after every fact; strong never goes back."""
    for seed in seeds:
        world, model, answered = plain_world(seed), Model(), dict[Table, int]()
        for fact in plain_history(world, STEPS):
            apply(model, fact)
            for one in sorted(world.lines):
                found = readings(model, [one], "strong")
                assert found or one not in answered, f"history {seed}: {one} turned into none"
                for reading in found:
                    assert reading.barrier >= answered.get(one, 0), (
                        f"history {seed}: {one} went back"
                    )
                    answered[one] = reading.barrier
                    assert is_true(world, reading), f"history {seed}: {reading}"
            query = world.random.sample(sorted(world.lines), min(3, len(world.lines)))
            for consistency in ("strong", "weak"):
                together = readings(model, query, consistency)
                assert len({reading.barrier for reading in together}) <= 1, (
                    f"history {seed}: {query}"
                )
                assert all(is_true(world, one) for one in together), f"history {seed}: {query}"


def is_true(world: PlainWorld, reading: Reading) -> bool:
    """Return true if the content is the sum of the barrier's base tables."""
    return world.content[reading.snapshot] == recomputed(world, reading.table, reading.barrier)


def folded(history: list[Fact]) -> dict[Table, dict[int, set[str]]]:
    """candidates(T, b) of every table, as the model has them."""
    model = Model()
    for fact in history:
        apply(model, fact)
    return {
        table: {b: {one.snapshot for one in done.candidates(b)} for b in done.order}
        for table, done in model.done.items()
    }


@each_size
def test_derived_barriers_do_not_depend_on_fact_order(seeds: range) -> None:
    """In any order, once or twice, exactly the barriers of the definition result."""
    for seed in seeds:
        history = list(plain_history(plain_world(seed), STEPS))
        wanted = of_all("moved", history).done()
        begin = [fact for fact in history if isinstance(fact, GroupDeclared | RunStarted)]
        shuffled = [fact for fact in history if not isinstance(fact, GroupDeclared | RunStarted)]
        Random(seed).shuffle(shuffled)

        assert folded(history) == wanted, f"history {seed}"
        assert folded([*begin, *shuffled, *shuffled[:5]]) == wanted, f"history {seed}"


@pytest.mark.parametrize("names_starts", [True, False])
def test_table_that_a_stream_writes_once_in_300_micro_batches_completes_its_barrier(
    *, names_starts: bool
) -> None:
    model, base, copy = Model(), table("base"), table("copy")
    apply(model, GroupDeclared("plain", (base,), 0.0))
    apply(model, RunStarted(job("copy"), "r", 1.0, "plain", (base,), (copy,)))
    parents = {0: None, 300: "c0", 600: "c300"}
    for number in range(601):
        at, cut = 10.0 + 2 * number, facts.WrittenSnapshot(base, f"b{number}")
        apply(model, facts.RootsCut("plain", number + 1, (cut,), at))
        since = f"b{number - 1}" if number and names_starts else None
        written = [
            facts.WrittenSnapshot(copy, f"c{number}", parents[number])
            for _ in range(number in parents)
        ]
        commit = facts.BarrierCommitted(
            job("copy"), "r", "plain", number + 1, at, at + 1, tuple(written),
            (facts.Used(base, f"b{number}", since=since),),
            batch=number, stated=False, query="q",
        )  # fmt: skip
        apply(model, commit)

    assert [(one.barrier, one.snapshot) for one in strong(model, [copy])] == [(601, "c600")]


def contents(rule: Rule, histories: int = 150) -> tuple[int, int]:
    """Count the snapshots that a rule puts under barriers.

    And those of them that differ from the base tables' sum.
    """
    found = wrong = 0
    for seed in range(histories):
        world = plain_world(seed)
        done = of_all(rule, plain_history(world, STEPS)).done()
        for name in {one.writes for one in world.jobs}:
            for barrier, snapshot in ((b, one) for b, all_ in done[name].items() for one in all_):
                found += 1
                wrong += barrier not in world.cuts or world.content[snapshot] != recomputed(
                    world, name, barrier
                )
    return found, wrong


def test_rule_shows_no_wrong_content() -> None:
    """The baseline for the controls below."""
    found, wrong = contents("moved")

    assert found > 1000
    assert wrong == 0


def test_control_flushes_at_a_barrier_hold_other_rows() -> None:
    found, wrong = contents("any")

    assert wrong > found / 20


def test_control_micro_batch_numbers_give_wrong_barriers() -> None:
    found, wrong = contents("number")

    assert wrong > found / 2


def test_control_rows_that_a_stream_found_in_its_table_are_in_its_snapshots() -> None:
    found, wrong = contents("found")

    assert wrong > found / 20


ROOT, COPY = table("root"), table("copy")


def micro_batch(
    query: str,
    number: int,
    read: str,
    at: float,
    *made: facts.WrittenSnapshot,
    since: str | None = None,
) -> facts.BarrierCommitted:
    """A micro-batch of a plain stream from the base table."""
    used = facts.Used(ROOT, read, since=since)
    return facts.BarrierCommitted(
        job("copy"), f"run of {query}", "bank", number + 1, at - 1, at, made, (used,),
        batch=number, stated=False, query=query,
    )  # fmt: skip


def test_new_checkpoint_on_a_filled_table_completes_nothing_until_rollback() -> None:
    """The query reads everything again, so every row appears twice."""
    model = Model()
    apply(model, GroupDeclared("bank", (ROOT,), 0.0))
    for barrier in (1, 2):
        apply(
            model,
            facts.RootsCut(
                "bank", barrier, (facts.WrittenSnapshot(ROOT, f"r{barrier}"),), float(barrier)
            ),
        )
    apply(model, RunStarted(job("copy"), "run of q1", 3.0, "bank", (ROOT,), (COPY,)))
    apply(
        model,
        micro_batch("q1", 0, "r1", 5.0, facts.WrittenSnapshot(COPY, "c1", operation="append")),
    )
    apply(
        model,
        micro_batch(
            "q2", 0, "r2", 8.0, facts.WrittenSnapshot(COPY, "c2", "c1", operation="append")
        ),
    )
    twice = dict(model.done[COPY].of)
    apply(
        model,
        micro_batch("q2", 0, "r2", 9.0, facts.WrittenSnapshot(COPY, "c3", "c2", replaces=True)),
    )
    anew = {barrier: one.snapshot for barrier, one in model.done[COPY].of.items()}
    apply(model, facts.RolledBack("bank", (COPY,), 0, 10.0))
    apply(
        model,
        micro_batch(
            "q3",
            0,
            "r2",
            12.0,
            facts.WrittenSnapshot(COPY, "c4", "cleared", operation="append", was_empty=True),
        ),
    )

    assert twice.keys() == {1}
    assert anew == {1: "c1", 2: "c3"}
    assert {barrier: one.snapshot for barrier, one in model.done[COPY].of.items()} == {2: "c4"}


IDLE_FIRST = [(0, None, "r1", None), (1, "r1", "r2", "c2"), (2, "r2", "r3", "c3")]
IDLE_LATER = [
    (0, None, "r1", "c1"),
    (1, "r1", "r2", None),
    (2, "r2", "r3", None),
    (3, "r3", "r4", "c4"),
]


def model_with_four_cuts() -> Model:
    """Return a group whose base table has four barriers, and a stream that copies it."""
    model = Model()
    apply(model, GroupDeclared("bank", (ROOT,), 0.0))
    apply(model, RunStarted(job("copy"), "run of q1", 0.5, "bank", (ROOT,), (COPY,)))
    for barrier in range(1, 5):
        snapshot = facts.WrittenSnapshot(ROOT, f"r{barrier}")
        apply(model, facts.RootsCut("bank", barrier, (snapshot,), float(barrier)))
    return model


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("batches", "carried"),
    [(IDLE_FIRST, {2: "c2", 3: "c3"}), (IDLE_LATER, {1: "c1", 4: "c4"})],
)
def test_stream_continues_after_a_micro_batch_without_rows(
    batches: list[tuple[int, str | None, str, str | None]], carried: dict[int, str], order: int
) -> None:
    """A foreachBatch that skips an empty frame, or a format that commits no empty append."""
    model = model_with_four_cuts()
    committed = [one for *_, one in batches if one is not None]
    parents = dict(zip(committed, ["created", *committed], strict=False))
    for number, since, read, made in batches[::order]:
        written = [
            facts.WrittenSnapshot(
                COPY, one, parents[one], operation="append", was_empty=parents[one] == "created"
            )
            for one in [made]
            if one is not None
        ]
        apply(model, micro_batch("q1", number, read, 10.0 + number, *written, since=since))

    assert {barrier: one.snapshot for barrier, one in model.done[COPY].of.items()} == carried


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("batches", [IDLE_FIRST, IDLE_LATER], ids=["idle first", "at once"])
def test_stream_that_began_on_unrecorded_rows_completes_nothing(
    batches: list[tuple[int, str | None, str, str | None]], order: int
) -> None:
    model = model_with_four_cuts()
    committed = [one for *_, one in batches if one is not None]
    parents = dict(zip(committed, ["filled", *committed], strict=False))
    for number, since, read, made in batches[::order]:
        written = [facts.WrittenSnapshot(COPY, one, parents[one]) for one in [made] if one]
        apply(model, micro_batch("q1", number, read, 10.0 + number, *written, since=since))

    assert not model.done[COPY].of
    (holder,) = held_by(model, [COPY])
    assert holder.state == "BROKEN"
    assert holder.why.startswith("its stream began on snapshot filled, which no run of the group")


def test_new_query_on_an_emptied_table_is_whole() -> None:
    """The advice for a stream that began on rows of others: empty the table, take a new checkpoint."""
    model = Model()
    apply(model, GroupDeclared("bank", (ROOT,), 0.0))
    apply(model, facts.RootsCut("bank", 1, (facts.WrittenSnapshot(ROOT, "r1"),), 1.0))
    apply(model, RunStarted(job("copy"), "run of q1", 3.0, "bank", (ROOT,), (COPY,)))
    apply(model, micro_batch("q1", 0, "r1", 5.0, facts.WrittenSnapshot(COPY, "c1", "filled")))
    blocked = dict(model.done[COPY].of)
    anew = facts.WrittenSnapshot(COPY, "c3", "c2", was_empty=True)
    apply(model, micro_batch("q2", 0, "r1", 8.0, anew))
    midway = facts.WrittenSnapshot(COPY, "c5", "c4", was_empty=True)
    apply(model, facts.RootsCut("bank", 2, (facts.WrittenSnapshot(ROOT, "r2"),), 9.0))
    apply(model, micro_batch("q2", 1, "r2", 10.0, midway, since="r1"))

    assert not blocked
    assert {barrier: one.snapshot for barrier, one in model.done[COPY].of.items()} == {1: "c3"}


def test_worlds_cover_every_promised_case() -> None:
    """Chains, joins, no news, new checkpoint folders, idle micro-batches and all batch runs occur."""
    seen: set[str] = set()
    for seed in range(200):
        world = plain_world(seed)
        for _ in plain_history(world, STEPS):
            pass
        seen |= {one.kind for one in world.jobs} | {
            "new folder" for one in world.jobs if one.query > 1
        }
        seen |= world.writes
        seen |= {"two batch jobs" for one in world.jobs if one.job[1].endswith(".1")}
        seen |= {"join" for one in world.jobs if len(one.reads) > 1}
        seen |= {
            "chain"
            for one in world.jobs
            if any(source in {w.writes for w in world.jobs} for source in one.reads)
        }
        seen |= {
            "no news"
            for b, cut in world.cuts.items()
            if cut.items() & world.cuts.get(b + 1, {}).items()
        }

    assert seen == {
        *("stream", "batch", "new folder", "two batch jobs", "join", "chain", "no news"),
        *("replaces", "completes", "part", "idle", "filled", "emptied"),
    }
