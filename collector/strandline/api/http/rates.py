"""The rate limits of a key.

A bucket of tokens for each key and scope, which fills at the rate of the settings.

A bucket holds ten seconds of its rate, so that a page that loads, or a job that ends, is not
slowed. Who sends events hears 503 where others hear 429: OpenLineage's clients come again after the
one, and drop the event after the other.
"""

import math
import time
from collections.abc import Callable, Mapping

from strandline.errors import OverloadError, RateError
from strandline.settings import Settings

BURST_SECONDS = 10
MOST_BUCKETS = 10_000


class Rates:
    """The buckets of one server.

    `per_second` by scope; a scope without a rate, or with 0, has none.
    """

    def __init__(
        self,
        per_second: Mapping[str, int],
        on_refused: Callable[[str], None] = lambda scope: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._on_refused = on_refused
        self.clock = clock
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}  # what was left, and when

    def spend(self, who: str, scope: str) -> None:
        """Take a token of `who`.

        A RateError, or for ingest an OverloadError, where none is left.
        """
        rate = self._per_second.get(scope, 0)
        if not rate:
            return
        now = self.clock()
        left, at = self._buckets.get((who, scope), (float(rate * BURST_SECONDS), now))
        left = min(float(rate * BURST_SECONDS), left + (now - at) * rate)
        if left >= 1:
            self._keep((who, scope), left - 1, now)
            return
        self._on_refused(scope)
        seconds = math.ceil((1 - left) / rate)
        why = (
            f"this key may ask for {scope} {rate} times a second and has done so; again in "
            f"{seconds} s"
        )
        raise OverloadError(why, seconds) if scope == "ingest" else RateError(why, seconds)

    def _keep(self, key: tuple[str, str], left: float, now: float) -> None:
        if key not in self._buckets and len(self._buckets) >= MOST_BUCKETS:
            self._buckets = {
                bucket: (had, at)
                for bucket, (had, at) in self._buckets.items()
                if now - at < BURST_SECONDS
            }  # the others are full again
        self._buckets[key] = left, now


def rates_of(settings: Settings) -> dict[str, int]:
    """Return the rates of the settings by scope."""
    return {
        "read": settings.max_reads_per_second,
        "ingest": settings.max_ingests_per_second,
        "admin": settings.max_changes_per_second,
    }
