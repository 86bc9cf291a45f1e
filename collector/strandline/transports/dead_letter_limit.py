"""The limit at which a consumer gives up.

A topic that is no OpenLineage topic looks like dead letters without end.

The limit is a value: a batch makes a new one, which counts only once the batch is committed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.errors import TooManyDeadLettersError

WINDOW = 10_000


@dataclass(frozen=True)
class DeadLetterLimit:
    """The limits of dead letters: how many in a row, and which share of the last 10,000 records."""

    max_in_row: int
    max_share: float
    in_row: int = 0
    recent: tuple[tuple[int, int], ...] = ()  # (records, dead ones) of each batch of the window

    def after(self, kinds: Sequence[str]) -> "DeadLetterLimit":
        """The limit after a batch with these outcomes, or TooManyDeadLettersError."""
        in_row = self._in_row(kinds)
        recent = (*self.recent, (len(kinds), sum(kind == "dead" for kind in kinds)))
        while sum(records for records, _ in recent[1:]) >= WINDOW:
            recent = recent[1:]
        records, dead = sum(size for size, _ in recent), sum(number for _, number in recent)
        if records >= WINDOW and dead > self.max_share * records:
            raise TooManyDeadLettersError(
                f"{dead} of the last {records} records are not OpenLineage events"
            )
        return replace(self, in_row=in_row, recent=recent)

    def _in_row(self, kinds: Sequence[str]) -> int:
        in_row = self.in_row
        for kind in kinds:
            in_row = in_row + 1 if kind == "dead" else 0
            if in_row >= self.max_in_row:
                raise TooManyDeadLettersError(
                    f"{in_row} records in a row are not OpenLineage events"
                )
        return in_row
