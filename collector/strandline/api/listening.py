"""The socket of a server."""

import socket

from strandline.errors import StrandlineError
from strandline.settings import Settings

BACKLOG = 2048  # connections that nobody has accepted yet


def listen(settings: Settings) -> socket.socket:
    """Return the socket of a server; StrandlineError says why there is none, and the way out.

    Port 0: one that is free.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it an answer
    # takes 40 ms more.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise StrandlineError(
            f"cannot listen on {settings.host}:{settings.port}: {error.strerror}; "
            "take another port with --port or STRANDLINE_PORT (0: any)"
        ) from error
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the address for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
