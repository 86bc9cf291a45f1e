"""One spool file on its way to the backend, a batch at a time.

So fresh events need not wait for all of it.
"""

from __future__ import annotations

from itertools import islice

from strandline_spark.delivery.spool import SpoolFile
from strandline_spark.delivery.transport import Delivery, Message


class Replay:
    """The rest of a file that is still to be sent.

    Its lines are read once; the file stays as it is until all of it is sent.
    """

    def __init__(self, file: SpoolFile) -> None:
        self.file = file
        self.left: list[Message] = []  # tried, and not sent
        self.went = False  # whether anything of it was
        self.at_end = False
        self._in_vain = 0  # attempts, one after the other
        self._partly = False
        self._lines = file.messages()
        self._ahead: list[Message | None] = []  # one that was read to see whether there are more

    def next_batch(self, size: int) -> tuple[list[Message], int]:
        """Those that were not tried yet, then those that did not go.

        The number of lines on the way that were not whole comes with them.
        """
        wanted = size - len(self.left)
        self._ahead += islice(self._lines, wanted + 1 - len(self._ahead))
        lines, self._ahead = self._ahead[:wanted], self._ahead[wanted:]
        self.at_end = not self._ahead
        fresh = [message for message in lines if message is not None]
        return [*fresh, *self.left], len(lines) - len(fresh)

    def tried(self, batch: list[Message], delivery: Delivery) -> None:
        """Note the outcome of that batch."""
        went = delivery.partly or len(delivery.unsent) < len(batch)
        first = (
            0 if went else 1
        )  # the one that never goes, perhaps: the next time another one stands before it
        self.left = [*delivery.unsent[first:], *delivery.unsent[:first]]
        self.went |= went
        self._in_vain = 0 if went else self._in_vain + 1
        self._partly = delivery.partly

    @property
    def stuck(self) -> bool:
        """True if nothing more of the rest can be sent now.

        Each of it has been tried first, or others of the file went.
        """
        return bool(self.left) and (
            self._partly or self._in_vain >= (1 if self.went else len(self.left))
        )
