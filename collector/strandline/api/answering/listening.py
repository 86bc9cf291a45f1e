"""The sockets of a server: one for each process that answers, all on one address.

The kernel shares new connections among them (SO_REUSEPORT) by the sender's address and port, so a connection stays with one process.
The first process holds all of them: who sends to one whose process has died waits for the next.
"""

import errno
import socket
import time
from contextlib import closing

from strandline.errors import SettingsError, StrandlineError
from strandline.settings import Settings

WAITING = 2048  # connections that nobody has accepted yet
FREED_SECONDS = 5  # how long processes of a server that was killed may take to notice
PAUSE_SECONDS = 0.1


def listen_alone(settings: Settings) -> socket.socket:
    """The socket of a server of one process, or a StrandlineError that says why there is none, with the way out."""
    return _listening(settings, settings.port, shared=False)


def listen(settings: Settings) -> list[socket.socket]:
    """A socket for each of `settings.processes`, or a StrandlineError. Port 0: one that is free."""
    if settings.processes == 1:
        return [listen_alone(settings)]
    if not hasattr(socket, "SO_REUSEPORT"):
        raise SettingsError([f"STRANDLINE_PROCESSES={settings.processes}: here, no two processes share a port"])
    with closing(_freed(settings)):  # whoever shares a port would share it with another server too
        pass
    first = _listening(settings, settings.port, shared=True)
    port = first.getsockname()[1]
    return [first, *(_listening(settings, port, shared=True) for _ in range(settings.processes - 1))]


def _freed(settings: Settings) -> socket.socket:
    until = time.monotonic() + FREED_SECONDS
    while True:
        try:
            return listen_alone(settings)
        except StrandlineError as error:
            in_use = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
            if not in_use or time.monotonic() > until:
                raise
            time.sleep(PAUSE_SECONDS)


def _listening(settings: Settings, port: int, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it an answer takes 40 ms more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((settings.host, port))
        listening.listen(WAITING)
    except OSError as error:
        listening.close()
        raise StrandlineError(
            f"cannot listen on {settings.host}:{port}: {error.strerror}; "
            "take another port with --port or STRANDLINE_PORT (0: any)"
        ) from error
    return listening


def address_of(listening: socket.socket) -> str:
    """The address for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
