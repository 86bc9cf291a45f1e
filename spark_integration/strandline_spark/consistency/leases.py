"""A reader's lease on the snapshots of an answer.

It is renewed in the background while the answer is in use.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import threading
import time
import weakref
from urllib.parse import quote

from strandline_spark.consistency.collector import (
    Collector,
    CollectorAwayError,
    ConsistencyError,
    LeaseLostError,
    UnknownTableError,
)

_LOG = logging.getLogger("strandline")


class Lease:
    """A reader's hold on the snapshots of an answer.

    While it lasts, the collector names none of them expirable.
    """

    def __init__(self, collector: Collector, lease_id: str, seconds: float) -> None:
        self.id = lease_id
        self._collector = collector
        self._seconds = seconds
        self._ended = threading.Event()
        self._until = time.monotonic() + seconds
        self._obstacle = ""  # why the last renewal came to nothing
        self.lost: str | None = None
        """Why the lease was lost; None while it lasts."""
        _KEEPER.add(self, seconds / 3)

    @property
    def held(self) -> bool:
        """True while the lease lasts, as far as this process knows."""
        return not self._ended.is_set()

    def renew(self) -> None:
        """Renew the lease for the same time, from now on.

        Raises:
            LeaseLostError: the collector says that the lease is over or unknown.
            ConsistencyError: the lease was not renewed for another reason: no answer, or a key that
                is no longer valid. It lasts until its time is over.
        """
        until = time.monotonic() + self._seconds
        try:
            self._collector.ask("PUT", self._path, {"leaseSeconds": self._seconds})
        except (LeaseLostError, UnknownTableError) as error:  # what 404 stands for
            self.lost = str(error)
            self._ended.set()
            raise self._loss(self.lost) from error
        except ConsistencyError as error:
            self._obstacle = str(error)
            raise
        self._until, self._obstacle = until, ""

    def check(self) -> None:
        """Raise LeaseLostError if the lease is over though nobody released it."""
        self._look_at_the_time()
        if self.lost is not None:
            raise self._loss(self.lost)

    def _look_at_the_time(self) -> None:
        """End the lease if its time is over."""
        if self.lost is None and not self._ended.is_set() and time.monotonic() > self._until:
            why = f" ({self._obstacle})" if self._obstacle else ""
            self.lost = f"it was not renewed for {self._seconds:g} s{why}"
            self._ended.set()

    def _loss(self, why: str) -> LeaseLostError:
        return LeaseLostError(
            f"lease {self.id} is lost, its snapshots may expire: {why}; ask for a version again"
        )

    def release(self) -> None:
        """End the lease; a second call does nothing.

        A collector that is away ends it by itself.
        """
        if not self._ended.is_set():
            self._ended.set()
            with contextlib.suppress(ConsistencyError):
                self._collector.ask("DELETE", self._path)

    def stop_renewing(self) -> None:
        """Let the lease run out."""
        self._ended.set()

    def keep(self) -> None:
        """Renew the lease, and log a failure.

        After a refusal it is renewed no longer than the lease lasts.
        """
        try:
            self.renew()
        except LeaseLostError as error:
            _LOG.warning("strandline: %s", error)
        except ConsistencyError as error:
            _LOG.warning("strandline: lease %s is not renewed: %s", self.id, error)
            if not isinstance(error, CollectorAwayError):
                self._look_at_the_time()

    @property
    def _path(self) -> str:
        return f"/api/v2/leases/{quote(self.id, safe='')}"


class Keeper:
    """The thread that renews all leases of this process; it ends with the last of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[
            tuple[float, int, float, weakref.ref[Lease]]
        ] = []  # a heap: when, which, how often
        self._number = 0
        self._thread: threading.Thread | None = None

    def add(self, lease: Lease, every: float) -> None:
        """Renew a lease every so many seconds, until it ends or is forgotten."""
        with self._changed:
            self._put(weakref.ref(lease), every)
            if (
                self._thread is None or not self._thread.is_alive()
            ):  # it ended, or a fork has left it behind
                self._thread = threading.Thread(
                    target=self._run, name="strandline-leases", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def _put(self, lease: weakref.ref[Lease], every: float) -> None:
        self._number += 1
        heapq.heappush(self._due, (time.monotonic() + every, self._number, every, lease))

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._thread = None
                    return
                at, _, every, reference = self._due[0]
                if at > time.monotonic():
                    self._changed.wait(at - time.monotonic())
                    continue
                heapq.heappop(self._due)
            lease = reference()
            if (
                lease is not None and lease.held
            ):  # one forgotten without a release runs out by itself
                lease.keep()
                if lease.held:
                    with self._changed:
                        self._put(reference, every)
            del lease


_KEEPER = Keeper()


def _in_child() -> None:
    """Start anew in a forked child.

    It has no thread for the parent's leases, and perhaps a locked lock.
    """
    global _KEEPER
    _KEEPER = Keeper()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
