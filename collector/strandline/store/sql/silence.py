"""A connection to PostgreSQL that notices when its other end is gone though nothing closed it.

The kernel notices a dead host (libpq's keepalives and tcp_user_timeout). It does not notice a
proxy, a load balancer or a tunnel that takes bytes and passes nothing on. A statement may work for
hours, so it has no time limit. Instead, a connection that waits in silence asks over another one
whether the backend works, and gives up if it does not, or if nobody answers. Only engine.py imports
this module, and only for PostgreSQL: psycopg takes a fifth of a second.
"""

import time
from collections.abc import Generator
from typing import Any, NamedTuple

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout, OperationalError

# Options of libpq, unless the address names them. For a Unix socket libpq ignores those of TCP.
OPTIONS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
AGAIN_SECONDS = 1.0  # an answer may have been on its way at the first look

_BACKEND = """
SELECT pg_backend_pid(),
       (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
       pg_postmaster_start_time()"""
# A backend that waits for a client that waits for it has lost the client. Its state is hidden if
# track_activities is off.
_WORKS = """
SELECT coalesce((
       SELECT coalesce(state, '') NOT LIKE 'idle%%'
              AND wait_event_type IS DISTINCT FROM 'Client'
         FROM pg_stat_activity
        WHERE pid = %s AND backend_start = %s), false)
 WHERE pg_postmaster_start_time() = %s"""


class Backend(NamedTuple):
    """The identity of a backend of a server."""

    pid: int
    started_at: Any
    server_started_at: Any


class SilentError(OperationalError):
    """PostgreSQL has not answered, and does not work on an answer."""


class Bounded(psycopg.Connection[Any]):
    """A connection that gives up after some silence, unless `_may_go_on` allows more."""

    seconds = 0.0  # of silence; 0: no limit

    def wait(self, gen: PQGen[Any], *more: Any, **named: Any) -> Any:
        """Wait for psycopg's next result, and watch the clock."""
        return super().wait(self._watched(gen) if self.seconds else gen, *more, **named)

    def _watched(self, gen: PQGen[Any]) -> Generator[Any, Any, Any]:
        """Yield the same steps; psycopg sends 0 ten times a second while nothing comes."""
        step, deadline, doubts = gen.send, time.monotonic() + self.seconds, 0
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    deadline, doubts = time.monotonic() + self.seconds, 0
                elif time.monotonic() > deadline:
                    doubts = 0 if self._may_go_on() else doubts + 1
                    if doubts > 1:
                        self._give_up()
                    deadline = time.monotonic() + (AGAIN_SECONDS if doubts else self.seconds)
                wanted = step(ready)
        except StopIteration as end:
            return end.value

    def _may_go_on(self) -> bool:
        return False

    def _give_up(self) -> None:
        self.close()  # so that its owner sees that it is lost
        raise SilentError(f"no answer for {self.seconds:g} s, and nothing works on one")


class Watched(Bounded):
    """The program's connections, which may be silent while their backend works."""

    backend: Backend | None = None
    options: dict[str, Any]

    def _may_go_on(self) -> bool:
        """Return whether an answer may still come.

        It may not if the backend is known to be idle, or if nobody answers at all.
        """
        if self.backend is None:
            return False
        try:
            with Bounded.connect(**self.options) as other:
                other.seconds = self.seconds
                row = other.execute(_WORKS, self.backend).fetchone()
        except (ConnectionTimeout, SilentError):
            return False
        except psycopg.Error:  # no connection is free, or it starts up: ours may be well
            return True
        return row is None or bool(row[0])  # no row: another server answers


def connect(options: dict[str, Any]) -> Watched:
    """Open a connection with these options of libpq, and default limits."""
    connection = Watched.connect(**(OPTIONS | options))
    connection.options = {
        name: value for name, value in (OPTIONS | options).items() if name != "context"
    }
    connection.seconds = int(connection.options["tcp_user_timeout"]) / 1000
    autocommit, connection.autocommit = connection.autocommit, True
    connection.backend = Backend(*connection.execute(_BACKEND).fetchone() or ())
    connection.autocommit = autocommit
    return connection
