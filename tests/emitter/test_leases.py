"""A lease ends when the collector says so or time runs out, not after one rejected renewal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from strandline.api.http.problems import problem_of
from strandline.errors import (
    ForbiddenError,
    NotFoundError,
    RateError,
    RefusedError,
    StrandlineError,
    UnauthorizedError,
)
from strandline_spark.consistency import leases
from strandline_spark.consistency.collector import (
    Collector,
    ConsistencyError,
    LeaseLostError,
    refusal_of,
)
from strandline_spark.consistency.leases import Lease

OVER = RefusedError("lease x is over: its snapshots may be gone", "expired")
RATE = RateError("this key may ask for read 5 times a second", 3)


class Told(Collector):
    """A collector that answers as it is told."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")
        self.status, self.body = 200, b"{}"

    def refuse(self, error: StrandlineError) -> None:
        """From now on, as the server does."""
        answer = problem_of(error)
        self.status, self.body = answer.status_code, bytes(answer.body)

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> dict[str, Any]:
        """One question."""
        if self.status >= 400:
            raise refusal_of(self.status, self.body, f"{method} {path}")
        return dict(orjson.loads(self.body))


class Hours:
    """A clock that stands still."""

    now = 0.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


class Idle:
    """Renews nothing by itself."""

    def add(self, lease: Lease, every: float) -> None:
        """The test renews it."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hours:
    """The clock of leases, which only the test advances."""
    clock = Hours()
    monkeypatch.setattr(leases, "_KEEPER", Idle())
    monkeypatch.setattr(leases, "time", clock)
    return clock


@pytest.mark.parametrize("status", [400, 401, 403, 408, 409, 425, 429, 500, 503])
def test_other_errors_do_not_end_a_lease(clock: Hours, status: int) -> None:
    collector = Told()
    lease = Lease(collector, "x", 60)
    collector.status, collector.body = status, b'{"detail": "not now"}'
    clock.now = 30
    lease.keep()
    with pytest.raises(ConsistencyError, match="not now") as error:
        lease.renew()
    lease.check()

    assert not isinstance(error.value, LeaseLostError)
    assert (lease.held, lease.lost) == (True, None)
    collector.status, collector.body = 200, b"{}"
    lease.keep()
    clock.now = 80
    lease.check()
    assert lease.held


@pytest.mark.parametrize(
    "error", [OVER, NotFoundError("unknown lease: x")], ids=["over", "unknown"]
)
def test_lease_that_the_collector_ended_is_lost_at_once(
    clock: Hours, error: StrandlineError
) -> None:
    collector = Told()
    lease = Lease(collector, "x", 60)
    collector.refuse(error)
    lease.keep()

    assert not lease.held
    with pytest.raises(LeaseLostError, match=f"{error}.*ask for a version again"):
        lease.check()


@pytest.mark.parametrize(
    "error",
    [RATE, UnauthorizedError("no such key"), ForbiddenError("it may not read")],
    ids=["429", "401", "403"],
)
def test_expired_lease_says_why_it_was_not_renewed(clock: Hours, error: StrandlineError) -> None:
    collector = Told()
    lease = Lease(collector, "x", 60)
    collector.refuse(error)
    clock.now = 20
    lease.keep()
    clock.now = 61

    with pytest.raises(LeaseLostError, match=f"not renewed for 60 s .*{error}"):
        lease.check()
    assert not lease.held


def test_a_refused_renewal_is_not_repeated_after_the_lease_is_over(clock: Hours) -> None:
    collector = Told()
    lease = Lease(collector, "x", 60)
    collector.refuse(UnauthorizedError("no such key"))
    clock.now = 61
    lease.keep()

    assert not lease.held
    assert "no such key" in str(lease.lost)


def test_later_loss_does_not_repeat_an_old_reason(clock: Hours) -> None:
    collector = Told()
    lease = Lease(collector, "x", 60)
    collector.refuse(RATE)
    lease.keep()
    collector.status, collector.body = 200, b"{}"
    lease.keep()
    clock.now = 61

    with pytest.raises(LeaseLostError, match=r"not renewed for 60 s; ask"):
        lease.check()
