"""Uses of snapshots: what checkpoints read and made, and which of it was made of which."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from strandline.store.lineage.stated_inputs import StatedInputs

At = tuple[int, str]  # a snapshot (canonical dataset, id), or a checkpoint (job, what it was)


class UsedSnapshot(NamedTuple):
    """A snapshot that a checkpoint read or made."""

    run: int
    job: int
    direction: int
    dataset: int
    snapshot: str
    after: str | None  # exclusive start of an incremental read
    barrier: int | None
    query_id: str
    observed: int

    @property
    def at(self) -> At:
        """The snapshot."""
        return self.dataset, self.snapshot

    @property
    def checkpoint(self) -> At:
        """Return the checkpoint.

        Of a streaming job that is its barrier, whichever run (a replay may have another) reported
        it.
        """
        return (
            self.job,
            f"run {self.run}" if self.barrier is None else f"{self.query_id} {self.barrier}",
        )


Pair = tuple[UsedSnapshot | None, UsedSnapshot | None]


def checkpoints_in(
    used: Iterable[UsedSnapshot],
) -> Iterable[tuple[list[UsedSnapshot], list[UsedSnapshot]]]:
    """Return the snapshots that each checkpoint read and made."""
    uses: dict[At, tuple[list[UsedSnapshot], list[UsedSnapshot]]] = {}
    for use in used:
        uses.setdefault(use.checkpoint, ([], []))[use.direction].append(use)
    return uses.values()


def made_of(
    stated: StatedInputs, reads: Sequence[UsedSnapshot], writes: Sequence[UsedSnapshot]
) -> Iterator[Pair]:
    """Yield each snapshot with a known input, or with none."""
    for write in writes:
        of = [read for read in reads if stated.admit(write.run, write.dataset, read.dataset)]
        yield from product(of or (None,), (write,))


def made_into(
    stated: StatedInputs, reads: Sequence[UsedSnapshot], writes: Sequence[UsedSnapshot]
) -> Iterator[Pair]:
    """Yield each snapshot with a known output, or with none."""
    for read in reads:
        into = [write for write in writes if stated.admit(write.run, write.dataset, read.dataset)]
        yield from product((read,), into or (None,))
