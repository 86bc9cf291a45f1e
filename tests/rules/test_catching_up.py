"""A job that is behind drains; one that is slow holds nobody back before it counts."""

from strandline.core.versions import facts
from strandline.core.versions.apply import apply
from strandline.core.versions.checkpoint import decide
from strandline.core.versions.completions import Completion, Completions
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import held_by, strong
from worlds.barriers.history import GROUP, job, table

VALUE, COUNT, SUM = table("value"), table("count"), table("sum")


def done(*barriers: int) -> Completions:
    """A history with these barriers."""
    found = Completions()
    for barrier in barriers:
        found.add(Completion(barrier, f"s{barrier}", None, None, 0.0, float(barrier)))
    return found


def test_job_takes_each_barrier_unless_it_is_far_behind() -> None:
    few, many = {VALUE: done(*range(1, 6))}, {VALUE: done(*range(1, 31))}

    assert (decide(few, 0).kind, decide(few, 0).barrier) == ("CHECKPOINT", 1)
    assert (decide(many, 3).kind, decide(many, 3).barrier) == ("ABORT", 30)
    assert decide(many, 3).abort == tuple(range(4, 30))
    assert decide(many, 3, most=None).barrier == 4


def test_job_far_behind_takes_the_newest_common_barrier() -> None:
    sources = {VALUE: done(*range(1, 31)), COUNT: done(*range(1, 21))}

    assert decide(sources, 0).barrier == 20


def words(latency: float, barriers: int = 40) -> Model:
    """A value each second, counted at once.

    The sums begin later and take so many seconds a checkpoint.
    """
    model, log = Model(), list[tuple[float, facts.Fact]]()
    for name, reads, writes in (("value", (), VALUE), ("count", (VALUE,), COUNT)):
        log.append((0.0, facts.RunStarted(job(name), f"{name}/1", 0.0, GROUP, reads, (writes,))))
    for barrier in range(1, barriers + 1):
        log.append((float(barrier), committed("value", barrier, float(barrier))))
        log.append((barrier + 0.4, committed("count", barrier, barrier + 0.4)))
    log.append((10.1, facts.RunStarted(job("sum"), "sum/1", 10.1, GROUP, (VALUE,), (SUM,))))
    position, at = 0, 10.2
    while at + latency < barriers:
        wanted = decide({VALUE: done(*range(1, int(at) + 1))}, position).barrier
        if wanted is None:
            at += 0.1
            continue
        position, at = wanted, at + latency
        log.append((at, committed("sum", wanted, at)))
    for _, fact in sorted(log, key=lambda one: one[0]):
        apply(model, fact)
    return model


def committed(name: str, barrier: int, at: float) -> facts.BarrierCommitted:
    """A job commits a barrier."""
    used = () if name == "value" else (facts.Used(VALUE, f"value{barrier}"),)
    made = (facts.WrittenSnapshot(table(name), f"{name}{barrier}"),)
    return facts.BarrierCommitted(job(name), f"{name}/1", GROUP, barrier, at - 0.1, at, made, used)


def test_slow_job_that_began_behind_still_becomes_a_member() -> None:
    """Taking each barrier, the job would fall further behind; draining, it becomes a member."""
    model = words(latency=1.3)

    assert len({reading.barrier for reading in strong(model, [VALUE, COUNT, SUM])}) == 1


def test_member_that_is_slow_holds_back_what_it_connects() -> None:
    model = words(latency=4.0)
    (answer,) = strong(model, [COUNT])
    (holder,) = held_by(model, [COUNT], [answer])

    assert answer.barrier == model.done[SUM].last
    assert (holder.name, holder.state) == ("sum", "RUNNING")
