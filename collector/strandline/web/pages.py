"""Serves the page: one document for all its addresses, and its files below /ui.

Users who need an API key get a session. No other origin takes part, no inline script or style runs:
the one exception is the import map of `index.html`, which the policy names by its hash.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from importlib.resources import files

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from strandline.core.access.granted import Access
from strandline.errors import UnauthorizedError

ASSETS = files("strandline.web") / "assets"
COOKIE = "strandline_key"
WRONG_KEY = "strandline.wrong_key"  # in a request's scope: it brought a key that opens nothing
Grant = Callable[[str], Access | None]
A_WEEK = 7 * 86_400
LONGEST_KEY = 4096  # bytes; a token of an identity provider is one too
KEY_SECONDS = 30
PAGES = (
    "/", "/graph", "/table", "/tables", "/group", "/groups", "/compare", "/impact", "/jobs", "/job",
    "/runs", "/run", "/events", "/trouble", "/search", "/words", "/login",
)  # fmt: skip
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def routes(grant: Grant | None) -> list[BaseRoute]:
    """Return the routes of the page.

    Where keys are asked for a session begins at /ui/session with one that `grant` takes.
    """
    pages: list[BaseRoute] = [Route(path, _page, methods=["GET"]) for path in PAGES]
    return [*pages, Route("/ui/session", _session(grant), methods=["GET", "POST", "DELETE"]),
            Route("/ui/{path:path}", _asset, methods=["GET"])]  # fmt: skip


def is_open(method: str, path: str) -> bool:
    """Return true if a request asks only for the page itself, or for a session."""
    if path == "/ui/session":
        return True
    return method in ("GET", "HEAD") and (path in PAGES or path.startswith("/ui/"))


def key_in_cookie(method: str, headers: list[tuple[bytes, bytes]]) -> str:
    """Return the API key of a browser's session.

    What changes something counts only with a header that no foreign page can send.
    """
    sent = {name: value for name, value in headers if name in (b"cookie", b"x-strandline-page")}
    if method not in ("GET", "HEAD") and b"x-strandline-page" not in sent:
        return ""
    match = re.search(rf"(?:^|;\s*){COOKIE}=([^;\s]+)", sent.get(b"cookie", b"").decode("latin-1"))
    return match[1] if match else ""


def is_browsing(request: Request) -> bool:
    """Return true if a browser opens an address that is none of the API's."""
    return (
        request.method in ("GET", "HEAD")
        and "text/html" in request.headers.get("accept", "")
        and not request.url.path.startswith(("/api/", "/ui/"))
    )


def document(status: int = 200) -> Response:
    """Return the page's document; its script reads the address and asks for a key if needed."""
    content = (ASSETS / "index.html").read_bytes()
    return Response(
        content,
        status,
        media_type=MEDIA[".html"],
        headers={**HEADERS, **_policy(), "Cache-Control": "no-cache"},
    )


async def _page(_: Request) -> Response:
    return document()


async def _asset(request: Request) -> Response:
    path = request.path_params["path"]
    file = _file(path)
    if file is None:
        return Response("no such file\n", 404, media_type="text/plain", headers=HEADERS)
    content, media, tag = file
    headers = {**HEADERS, "ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=media, headers=headers)


def _session(grant: Grant | None) -> Callable[[Request], object]:
    async def opens(request: Request, key: str) -> bool:
        if grant is None:
            return True
        try:
            is_valid = bool(key) and await run_in_threadpool(grant, key) is not None
        except UnauthorizedError:  # a token that is over, or no good
            is_valid = False
        if key and not is_valid:
            request.scope[WRONG_KEY] = True
        return is_valid

    async def session(request: Request) -> Response:
        if request.method == "GET":
            needed = not await opens(request, request.cookies.get(COOKIE, ""))
            return Response(
                b'{"keyNeeded": %s}' % (b"true" if needed else b"false"),
                media_type="application/json",
            )
        if "x-strandline-page" not in request.headers:
            return Response(
                '{"detail": "only the page may do this"}', 403, media_type="application/json"
            )
        if request.method == "DELETE":
            response = Response(status_code=204)
            response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
            return response
        key = await _key_of(request)
        if not re.fullmatch(r"[\x21-\x3a\x3c-\x7e]+", key) or not await opens(request, key):
            return Response(
                '{"detail": "this is not a valid API key"}', 401, media_type="application/json"
            )
        response = Response(status_code=204)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, key, max_age=A_WEEK, path="/", httponly=True, samesite="strict", secure=secure
        )
        return response

    return session


async def _key_of(request: Request) -> str:
    """Return the body of a login form; nothing if it is too long for a key or does not arrive.

    Its sender has shown none yet.
    """
    read = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(KEY_SECONDS):
            async for chunk in request.stream():
                read += chunk
                if len(read) > LONGEST_KEY:
                    return ""
            return read.decode("latin-1").strip()
    return ""


@cache
def _policy() -> dict[str, str]:
    """Return the content security policy of the page."""
    document = (ASSETS / "index.html").read_text(encoding="utf-8")
    inline = re.findall(r'<script type="importmap">(.*?)</script>', document, re.DOTALL)
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in inline)
    rules = (
        "default-src 'none'", f"script-src 'self' {hashes}", "style-src 'self'",
        "img-src 'self' data: blob:", "connect-src 'self'", "worker-src 'self'", "font-src 'self'",
        "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
    )  # fmt: skip
    return {"Content-Security-Policy": "; ".join(rules)}


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=200)
def _file(path: str) -> tuple[bytes, str, str] | None:
    """Return a file of the page with its media type and its tag, or None.

    Only names that are really there are looked at.
    """
    place = ASSETS
    for part in path.split("/"):
        inside = place.iterdir() if place.is_dir() else ()
        child = next((character for character in inside if character.name == part), None)
        if child is None:
            return None
        place = child
    media = MEDIA.get("." + path.rpartition(".")[2])
    if media is None or not place.is_file():
        return None
    content = place.read_bytes()
    return content, media, f'"{hashlib.sha256(content).hexdigest()[:20]}"'
