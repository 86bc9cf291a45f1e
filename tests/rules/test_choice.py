"""One barrier with several candidates: the answer shows no table in two states."""

from strandline.core.versions.apply import apply
from strandline.core.versions.certificates import certify, refuse_contradictions
from strandline.core.versions.facts import (
    BarrierCommitted,
    GroupDeclared,
    RootsCut,
    RunStarted,
    Table,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong, weak
from worlds.barriers.history import GROUP, job, table

ROOT, A, B, C = (table(name) for name in ("root", "a", "b", "c"))


def model_of_one_barrier() -> Model:
    """A base table with one barrier."""
    model = Model()
    apply(model, GroupDeclared(GROUP, (ROOT,), 0.0))
    apply(model, RootsCut(GROUP, 1, (WrittenSnapshot(ROOT, "r1"),), 1.0))
    return model


def replace_by_run(model: Model, snapshot: str, at: float, **reads: str) -> None:
    """Let a batch run replace the table that a snapshot's name begins with."""
    output, sources = table(snapshot[0]), tuple(table(name) for name in reads)
    name, run = f"to_{snapshot[0]}", f"run of {snapshot}"
    used = tuple(Used(table(source), read, False) for source, read in reads.items())
    made = WrittenSnapshot(output, snapshot, at=at, operation="overwrite", replaces=True)
    apply(model, RunStarted(job(name), run, at, GROUP, sources, (output,), batch=True))
    apply(
        model,
        BarrierCommitted(
            job(name), run, GROUP, 0, at, at + 0.5, (made,), used, stated=False
        ),
    )  # fmt: skip


def shown(model: Model, *tables: Table) -> list[str]:
    """The snapshots of a strong answer."""
    return [reading.snapshot for reading in strong(model, tables)]


def test_a_run_over_two_states_of_a_table_takes_no_answer_away() -> None:
    """Moving tables back one at a time passed the choice that fits (history 4239)."""
    model = model_of_one_barrier()
    for number in (1, 2, 3):
        replace_by_run(model, f"a{number}", 10.0 * number, root="r1")
        replace_by_run(model, f"b{number}", 10.0 * number + 1, a=f"a{number}")
    replace_by_run(model, "c1", 40.0, a="a2", b="b2")
    replace_by_run(model, "c2", 50.0, a="a3", b="b3")
    before = shown(model, C)
    replace_by_run(model, "c3", 60.0, a="a1", b="b3")

    assert before == ["c2"]
    assert shown(model, C) == ["c2"]
    assert shown(model, A, B, C) == ["a3", "b3", "c2"]
    assert [one.snapshot for one in weak(model, [C])] == ["c2"]


def test_an_answer_does_not_depend_on_the_order_of_its_tables() -> None:
    model = model_of_one_barrier()
    for number in (1, 2):
        replace_by_run(model, f"a{number}", 10.0 * number, root="r1")
    replace_by_run(model, "b1", 30.0, a="a2")
    replace_by_run(model, "b2", 31.0, a="a1")
    replace_by_run(model, "c1", 32.0, a="a2")

    assert shown(model, A, B, C) == ["a2", "b1", "c1"]
    assert shown(model, C, B, A) == ["c1", "b1", "a2"]
    assert shown(model, A, B) == list(reversed(shown(model, B, A)))


def test_a_certificate_shows_the_snapshots_of_its_answer() -> None:
    """Asked for alone, b would be shown as b2; together with c it is b1."""
    model = model_of_one_barrier()
    for number in (1, 2):
        replace_by_run(model, f"a{number}", 10.0 * number, root="r1")
    replace_by_run(model, "b1", 30.0, a="a1")
    replace_by_run(model, "b2", 31.0, a="a2")
    replace_by_run(model, "c1", 32.0, a="a1")
    readings = strong(model, [B, C])

    document = certify(model, readings[:1]).as_document()

    refuse_contradictions(document)
    assert [one["snapshotId"] for one in document["entries"]] == ["a1", "b1", "r1"]
