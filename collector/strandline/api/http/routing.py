"""From a request to an operation: path segments, parameters, body, answer.

Segments are split before they are decoded, so `%2F` stays inside its segment and an empty segment
counts: names of tables hold slashes, and the database of a path or topic is empty. Below /api/v1 a
path that fits nowhere is read once more with parameters that may hold slashes: some clients and
proxies do not encode them.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from strandline.api.http.auth import ACCESS
from strandline.api.http.bodies import body_of
from strandline.api.http.formats import JSON, exported, format_of
from strandline.api.http.operations import MOST_VALUES, Ask, Operation, Parameter, ParameterError
from strandline.api.http.permission import refuse_other_namespace, refuse_unpermitted, seen_of
from strandline.api.http.problems import problem, problem_of
from strandline.api.http.questions import Questions
from strandline.core.access.granted import NOTHING, Access
from strandline.core.redaction.text import redact_text
from strandline.core.stopping import go_on
from strandline.errors import BodyError, StrandlineError
from strandline.store.audit import Entry, note
from strandline.store.sql.narrowed import narrowed

DUMPED = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z
ROUTE = "strandline.route"
STRICT = "/api/v2/"  # clients of OpenLineage and Marquez send what they like
LOOSE = "/api/v1/"
LONGEST_DETAILS = 1000
BODY = "strandline.body"  # where a request's scope has it once it is read


class PathRoute(BaseRoute):
    """All operations of one path."""

    def __init__(
        self, path: str, operations: Mapping[str, Operation], *, slashes: bool = False
    ) -> None:
        """slashes: its parameters may hold slashes, the last as many as there are."""
        self.path = path
        self.operations = operations
        self._async = {
            method for method, one in operations.items() if inspect.iscoroutinefunction(one.run)
        }
        parts = re.split(r"(\{\w+\})", path)
        self._pattern = re.compile(
            "".join(_pattern_of(part, slashes=slashes) for part in parts), re.DOTALL
        )

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Full for a path of this form, whatever the method."""
        if scope["type"] != "http":
            return Match.NONE, {}
        found = self._pattern.fullmatch(_raw_path(scope))
        if not found:
            return Match.NONE, {}
        parameters = {name: unquote(part) for name, part in found.groupdict().items()}
        return Match.FULL, {"path_params": parameters, ROUTE: self.path}

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        """Operations have no names to look up."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the operation of the method, HEAD as GET."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self.operations.get(method)
        if operation is not None:
            response = await audited(
                operation, Request(scope, receive, send), on_loop=method in self._async
            )
        elif method == "OPTIONS":
            response = Response(status_code=204, headers={"Allow": self.allowed})
        else:
            refusal = f"{self.path} answers {self.allowed}"
            response = problem(405, "method_not_allowed", refusal, {"Allow": self.allowed})
        await response(scope, receive, send)

    @property
    def allowed(self) -> str:
        """The methods that it answers."""
        also = {"HEAD", "OPTIONS"} if "GET" in self.operations else {"OPTIONS"}
        return ", ".join(sorted(self.operations.keys() | also))


class LiteralRoutes(BaseRoute):
    """All paths without parameters.

    Looked up, where trying one after the other took a tenth of a POST's time.
    """

    def __init__(self, routes: Mapping[str, PathRoute]) -> None:
        self._routes = routes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Full for exactly such a path, whatever the method."""
        if scope["type"] != "http" or (path := _raw_path(scope)) not in self._routes:
            return Match.NONE, {}
        return Match.FULL, {"path_params": {}, ROUTE: path}

    def url_path_for(self, name: str, /, **path_params: Any) -> Any:
        """Operations have no names to look up."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the path's own route does."""
        await self._routes[_raw_path(scope)].handle(scope, receive, send)


def route_of(scope: Scope) -> str:
    """The path as it was declared, once it is routed.

    `page` for a file of the page, `none` for what is not there.
    """
    route: str = scope.get(ROUTE) or ("page" if "endpoint" in scope else "none")
    return route


def routes_of(operations: tuple[Operation, ...]) -> list[BaseRoute]:
    """Routes for all paths; those without parameters first, so that a literal segment beats a parameter."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation
    routes = {
        path: PathRoute(path, paths[path])
        for path in sorted(paths, key=lambda path: path.count("{"))
    }
    literal = {path: routes.pop(path) for path in paths if "{" not in path}
    return [LiteralRoutes(literal), *routes.values(), *_loose(paths)]


def _loose(paths: Mapping[str, Mapping[str, Operation]]) -> list[PathRoute]:
    """The paths of Marquez' API once more; the one that says most of itself first."""
    with_names = [path for path in paths if path.startswith(LOOSE) and "{" in path]
    fixed = {path: sum("{" not in part for part in path.split("/")) for path in with_names}
    return [
        PathRoute(path, paths[path], slashes=True)
        for path in sorted(fixed, key=lambda path: -fixed[path])
    ]


async def audited(operation: Operation, request: Request, *, on_loop: bool) -> Response:
    """What the operation says.

    Where it needs an admin to change something, who asked is noted, whatever the answer.
    """
    if operation.scope != "admin" or operation.method == "GET":
        return await permitted(operation, request, on_loop=on_loop)
    try:
        response = await permitted(operation, request, on_loop=on_loop)
    except StrandlineError as error:
        await run_in_threadpool(_note, operation, request, problem_of(error).status_code)
        raise
    await run_in_threadpool(_note, operation, request, response.status_code)
    return response


def _note(operation: Operation, request: Request, status: int) -> None:
    access: Access = request.scope[ACCESS]
    asked = dict(request.query_params) | request.path_params
    if (body := request.scope.get(BODY)) is not None:
        asked["body"] = body
    details = redact_text(orjson.dumps(asked).decode())[:LONGEST_DETAILS]
    address = address_of(request)
    what = f"{operation.method} {operation.path}"
    state = request.app.state
    with state.engine.begin() as connection:
        note(connection, Entry(datetime.now(UTC), access.who, what, address, status, details))
    state.log.info(
        "audit", who=access.who, what=what, address=address, status=status, details=details
    )


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else ""


async def permitted(operation: Operation, request: Request, *, on_loop: bool) -> Response:
    """What the operation says to this request, if the request's key may ask it.

    Of what the key does not see, nothing.
    """
    access: Access = request.scope[ACCESS].for_scope(operation.scope)
    request.scope[ACCESS] = access
    if operation.scope == "open":
        return await answer(operation, request, on_loop=on_loop)
    request.app.state.rates.spend(access.who or address_of(request), operation.scope)
    refuse_unpermitted(operation, access)
    try:
        return await answer(operation, request, on_loop=on_loop)
    except StrandlineError as error:
        if access.everything:
            raise
        return await run_in_threadpool(_seen_refusal, problem_of(error), request)


def _seen_refusal(refusal: Response, request: Request) -> Response:
    """Return a refusal without the names that the request's key does not see."""
    refusal.body = orjson.dumps(seen_of(orjson.loads(refusal.body), request))
    refusal.headers["content-length"] = str(len(refusal.body))
    return refusal


async def answer(operation: Operation, request: Request, *, on_loop: bool) -> Response:
    """What the operation says to this request."""
    given = _parameters(operation, request)
    state = request.app.state
    access: Access = request.scope[ACCESS]
    refuse_other_namespace(operation, access, given)
    ask = Ask(
        engine=narrowed(state.engine, NOTHING if operation.scope == "open" else access),
        whole_engine=state.engine,
        access=access,
        settings=state.settings,
        log=state.log,
        metrics=state.metrics,
        graph=state.graph,
        request=request,
        given=given,
        body=None,
        now=datetime.now(UTC),
    )
    if on_loop:
        answer = await operation.run(ask)
        if isinstance(answer, Response):
            return answer
        return await run_in_threadpool(_response_of, operation, ask, answer)
    request.scope[BODY] = body = await _body(operation, request)
    ask = replace(ask, body=body)
    if operation.wait is not None:
        await operation.wait(ask)
    run = partial(_run, operation, ask)
    if not operation.is_question:
        return await run_in_threadpool(run)
    questions: Questions = state.questions
    return await questions.answer(request, access.who or address_of(request), run)


def _run(operation: Operation, ask: Ask) -> Response:
    return _response_of(operation, ask, operation.run(ask))


def _response_of(operation: Operation, ask: Ask, answer: Any) -> Response:
    """Return what an operation answers as the request wants it, without what its key does not see."""
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=204)
    go_on()
    request = ask.request
    if operation.scope != "open" and not ask.access.everything:
        answer = seen_of(orjson.loads(orjson.dumps(answer, option=DUMPED)), request)
    if operation.export is not None:
        wanted = format_of(request, operation.export, ask.given["format"])
        if wanted != JSON:
            plain = orjson.loads(orjson.dumps(answer, option=DUMPED))
            return exported(request, operation.path, wanted, plain, operation.columns)
    content = orjson.dumps(answer, option=DUMPED)
    return Response(content, operation.status, media_type=operation.media)


def _pattern_of(part: str, *, slashes: bool) -> str:
    name = ".+?" if slashes else "[^/]*"
    return f"(?P<{part[1:-1]}>{name})" if part.startswith("{") else re.escape(part)


def _raw_path(scope: Scope) -> str:
    raw: bytes | None = scope.get("raw_path")
    return raw.decode("latin-1").partition("?")[0] if raw else scope["path"]


def _parameters(operation: Operation, request: Request) -> dict[str, Any]:
    if not operation.parameters and not request.scope["query_string"]:
        return {}
    if operation.path.startswith(STRICT):
        _refuse_odd(operation, request)
    texts = dict(request.query_params) | request.path_params
    return {
        one.name: _several(one, request.query_params.getlist(one.name))
        if one.many
        else _parameter(one, texts.get(one.name))
        for one in operation.parameters
    }


def _refuse_odd(operation: Operation, request: Request) -> None:
    """A misspelt parameter would be an answer to another question.

    Of two of one name only one would count.
    """
    declared = [
        parameter.name
        for parameter in operation.parameters
        if f"{{{parameter.name}}}" not in operation.path
    ]
    many = {parameter.name for parameter in operation.parameters if parameter.many}
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name not in declared:
            raise ParameterError(
                f"parameter {name!r} is not known here; known: {', '.join(declared) or 'none'}"
            )
        if given.count(name) > 1 and name not in many:
            raise ParameterError(f"parameter {name} is given more than once")


def _several(parameter: Parameter, texts: Sequence[str]) -> tuple[Any, ...]:
    """The values of a parameter that may be given several times, each once."""
    if len(texts) > MOST_VALUES:
        raise ParameterError(f"parameter {parameter.name} is given more than {MOST_VALUES} times")
    if not texts and parameter.required:
        _parameter(parameter, None)
    return tuple(dict.fromkeys(_parameter(parameter, text) for text in texts))


def _parameter(parameter: Parameter, text: str | None) -> Any:
    if text is None:
        if parameter.required:
            raise ParameterError(f"parameter {parameter.name} is missing: {parameter.about}")
        return parameter.default
    try:
        return parameter.kind.parse(text)
    except ValueError as error:
        raise ParameterError(f"parameter {parameter.name} {error}") from None


async def _body(operation: Operation, request: Request) -> Any:
    if operation.body is None:
        return None
    state = request.app.state
    async with body_of(request, state.settings, state.room) as raw:
        if not raw and operation.body_optional:
            return None
        return await run_in_threadpool(_parsed, raw)


def _parsed(raw: bytes) -> Any:
    try:
        document = orjson.loads(raw)
    except ValueError as error:
        raise BodyError(f"the body is not JSON: {error}") from None
    if b"\\u0000" in raw and _has_nul(document):
        raise BodyError("the body has a character (U+0000) that no name can have")
    return document


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\x00" in value
