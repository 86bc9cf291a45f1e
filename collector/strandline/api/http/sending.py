"""Sends large answers in pieces, and bounds the memory of those that are being read.

A client that reads slowly holds its answer in memory. Beyond a bound over all clients, and beyond
half of it for one client, the answer is 503. A client that stops reading is cut off by its
connection (`connections`).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strandline.api.http.problems import problem_of
from strandline.errors import OverloadError

PIECE = 64 << 10  # no more than the connection takes before it says that its client has to read


class AnswerRoom:
    """The bytes of large answers that are being sent, by client."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._used: Counter[str] = Counter()

    @property
    def used(self) -> int:
        """The bytes of all clients together."""
        return self._used.total()

    @contextmanager
    def taken(self, client: str, amount: int) -> Iterator[None]:
        """Count an answer while it is sent, or raise an OverloadError.

        An answer is always sent if it is the only one.
        """
        used = self.used
        if used and used + amount > self._size:
            raise OverloadError("too many large answers are being read; ask again later")
        if self._used[client] and self._used[client] + amount > self._size // 2:
            raise OverloadError("read the large answers that you asked for; then ask again")
        self._used[client] += amount
        try:
            yield
        finally:
            self._used[client] -= amount
            if not self._used[client]:
                del self._used[client]


class BoundAnswers:
    """ASGI middleware that sends what is larger than a piece in pieces, while there is room."""

    def __init__(self, app: ASGIApp, room: AnswerRoom) -> None:
        self._app = app
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass small answers and streams on as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held: Message | None = None

        async def send_bounded(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _length_of(message) > PIECE:
                held = message
            elif held is None:
                await send(message)
            else:
                start, held = held, None
                await self._send_in_pieces(start, message["body"], (scope, receive, send))

        await self._app(scope, receive, send_bounded)

    async def _send_in_pieces(
        self, start: Message, body: bytes, exchange: tuple[Scope, Receive, Send]
    ) -> None:
        scope, _, send = exchange
        client = (scope.get("client") or ("",))[0]
        try:
            with self._room.taken(client, len(body)):
                await send(start)
                for place in range(0, len(body), PIECE):
                    piece = body[place : place + PIECE]
                    more = place + PIECE < len(body)
                    await send({"type": "http.response.body", "body": piece, "more_body": more})
        except OverloadError as error:
            await problem_of(error)(*exchange)


def _length_of(start: Message) -> int:
    """Return the length that an answer announces; 0 for a stream."""
    for name, value in start["headers"]:
        if name == b"content-length":
            return int(value)
    return 0
