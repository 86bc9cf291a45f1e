"""At most one writer of a table and no cycle, whatever is registered.

A refused registration changes nothing.
"""

from random import Random

from strandline.core.versions.apply import apply
from strandline.core.versions.facts import Job, JobRegistered, RunStarted, Table
from strandline.core.versions.model import Model
from strandline.core.versions.registration import refuse_registration
from strandline.errors import RefusedError
from worlds.barriers.history import job, table
from worlds.barriers.sizes import each_size

Known = dict[Job, tuple[set[Table], set[Table]]]


def wrong(known: Known, wanted: JobRegistered) -> str | None:
    """Return the fault by definition of the would-be state.

    Two writers of a table, or a way from a table back to it.
    """
    reads, writes = known.get(wanted.job, (set(), set()))
    after = {**known, wanted.job: (reads | set(wanted.reads), writes | set(wanted.writes))}
    written = [one for _, sinks in after.values() for one in sinks]
    if len(written) != len(set(written)):
        return "writer"
    steps = {
        (source, sink)
        for sources, sinks in after.values()
        for source in sources - sinks
        for sink in sinks
    }
    reached = set(steps)
    while more := {(a, d) for a, b in reached for c, d in steps if b == c} - reached:
        reached |= more
    return "cycle" if any(a == b for a, b in reached) else None


@each_size
def test_registration_rejects_exactly_what_the_definition_forbids(seeds: range) -> None:
    refused = {"writer": 0, "cycle": 0}
    for seed in seeds:
        random, model, known = Random(seed), Model(), Known()
        for turn in range(12):
            wanted = some_registration(random, turn)
            before = repr(model)
            try:
                refuse_registration(model, wanted)
                code = None
            except RefusedError as error:
                code = error.code
                refused[code] += 1
            assert code == wrong(known, wanted), f"history {seed}, turn {turn}"
            assert repr(model) == before
            if code is None:
                apply(model, wanted)
                reads, writes = known.setdefault(wanted.job, (set(), set()))
                reads.update(wanted.reads)
                writes.update(wanted.writes)
                if random.random() < 0.3:
                    apply(
                        model,
                        RunStarted(wanted.job, f"{wanted.job[1]}/1", float(turn), "d", (), ()),
                    )
    assert refused["writer"] > len(seeds)
    assert refused["cycle"] > len(seeds) / 4


def some_registration(random: Random, turn: int) -> JobRegistered:
    """A job with a source and a sink."""
    one, other = (table(f"t{random.randint(0, 5)}") for _ in range(2))
    reads, writes = ((one,), ()) if random.random() < 0.3 else ((one,), (other,))
    return JobRegistered(job(f"j{random.randint(0, 4)}"), reads, writes, float(turn), "d")
