"""Paths as they were sent: segments are split before they are decoded.

So `%2F` stays inside its segment and an empty segment counts: names of tables hold slashes, and the
database of a path or topic is empty.
"""

from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send


class NameConvertor(Convertor[str]):
    """A segment, which may be empty."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        """Decode the segment."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """Encode the segment."""
        return quote(value, safe="")


class SlashedConvertor(NameConvertor):
    """A name whose slashes were not encoded."""

    regex = ".+?"


register_url_convertor("name", NameConvertor())
register_url_convertor("slashed", SlashedConvertor())


class RawPaths:
    """ASGI middleware: routes see the path as it was sent, and HEAD as GET.

    The server keeps its own scope, so that it still sends no body to HEAD.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a copy of the scope on."""
        if scope["type"] == "http":
            raw = scope.get("raw_path")
            scope = {
                **scope,
                "path": raw.decode("latin-1").partition("?")[0] if raw else scope["path"],
                "method": "GET" if scope["method"] == "HEAD" else scope["method"],
            }
        await self._app(scope, receive, send)
