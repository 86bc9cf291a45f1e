"""Errors as problem details (RFC 9457): one place says which error of the tree is which status.

Every answer that is not a success has `type`, `title`, `status`, `detail` and a `code` that
programs may rely on.
"""

from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import orjson
from sqlalchemy.exc import DatabaseError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from strandline.errors import (
    BodyError,
    ForbiddenError,
    InvalidEventError,
    MediaTypeError,
    NotFoundError,
    NotJsonError,
    OverloadError,
    ParameterError,
    QuestionError,
    RateError,
    RefusedError,
    RequestError,
    SchemaError,
    StoppedError,
    StrandlineError,
    TooLargeError,
    UnauthorizedError,
    WaitedError,
)
from strandline.store.sql.db_errors import is_damage, reason_of
from strandline.web.pages import document, is_browsing

MEDIA = "application/problem+json"
# The first that fits, so the narrower error stands first.
STATUS: tuple[tuple[type[StrandlineError], int], ...] = (
    (TooLargeError, 413),
    (BodyError, 400),
    (RequestError, 400),
    (ParameterError, 400),
    (QuestionError, 400),
    (NotJsonError, 400),
    (InvalidEventError, 422),
    (UnauthorizedError, 401),
    (ForbiddenError, 403),
    (MediaTypeError, 415),
    (NotFoundError, 404),
    (RefusedError, 409),
    (OverloadError, 503),
    (StoppedError, 503),
    (RateError, 429),
    (SchemaError, 503),
    (WaitedError, 504),
)
# The database is away, or all connections are in use: no fault of ours whose trace the log should
# have.
NOBODYS = (OperationalError, InterfaceError, InternalError, NoConnectionError)


def problem(
    status: int, code: str, detail: str, headers: dict[str, str] | None = None, **more: Any
) -> Response:
    """Return a problem document."""
    title = HTTPStatus(status).phrase
    content = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "code": code,
        **more,
    }
    return Response(orjson.dumps(content, default=str), status, headers, MEDIA)


def problem_of(error: StrandlineError) -> Response:
    """Return the problem document of an error of the tree."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    match error:
        case OverloadError() | RateError():
            return problem(status, error.code, str(error), {"Retry-After": str(error.retry_after)})
        case InvalidEventError():
            return problem(status, error.code, str(error), path=error.path, reason=error.reason)
        case NotFoundError() if error.candidates:
            return problem(status, error.code, str(error), candidates=error.candidates)
        case UnauthorizedError():
            return problem(status, error.code, str(error), {"WWW-Authenticate": "Bearer"})
        case TooLargeError():
            return problem(
                status, error.code, str(error), {"Connection": "close"}
            )  # the rest of it is not wanted
    return problem(status, error.code, str(error))


async def on_error(request: Request, error: Exception) -> Response:
    """Answer for an error that a route raised.

    A browser at an address that is none of the API's gets the page, which says what is wrong.
    """
    match error:
        case HTTPException(status_code=404) if is_browsing(request):
            return document(404)
        case UnauthorizedError() if is_browsing(request):
            return document(401)
        case StrandlineError():
            return problem_of(error)
        case HTTPException(status_code=404):
            return problem(
                404,
                "not_found",
                f"{unquote(request.url.path)}: no such path; /docs lists all paths",
            )
        case HTTPException(status_code=405):
            return _other_method(request)
        case HTTPException():
            code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return problem(error.status_code, code, str(error.detail), dict(error.headers or {}))
        case NoConnectionError():
            return problem(
                503, "overload", "all connections to the database are in use", {"Retry-After": "5"}
            )
        case OperationalError() | InterfaceError() | InternalError():
            reason = str(error.orig or error).strip().partition("\n")[0]
            return problem(
                503, "database", f"the database does not answer: {reason}", {"Retry-After": "5"}
            )
    if isinstance(error, DatabaseError) and is_damage(error):
        request.app.state.damage = f"the database is damaged: {reason_of(error)}"
        return problem(503, "database", request.app.state.damage, {"Retry-After": "5"})
    return problem(500, "internal", "an error of Strandline's own; its log has the trace")


def _other_method(request: Request) -> Response:
    """Answer OPTIONS, or refuse a method, with those that the path has."""
    path = request.scope["path"]
    routes = [
        route
        for route in request.app.routes
        if route.path_regex.match(path) and route.methods is not None
    ]
    methods = {method for route in routes for method in route.methods} | {"OPTIONS"}
    allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
    if request.method == "OPTIONS":
        return Response(status_code=204, headers={"Allow": allowed})
    path = getattr(routes[0], "path_format", routes[0].path)
    refusal = f"{path} answers {allowed}"
    return problem(405, "method_not_allowed", refusal, {"Allow": allowed})
