"""FastAPI's routes with this project's rules.

A route refuses before it reads a body, runs plain functions in threads for questions, audits what
admins change, and hides from an answer what its key does not see.
"""

import inspect
import re
from collections.abc import Callable, Coroutine, Iterable
from datetime import UTC, datetime
from functools import partial, wraps
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import unquote_to_bytes

import orjson
from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import request_response
from starlette.types import Scope
from typing_extensions import is_typeddict

import strandline.api.http.raw_paths  # noqa: F401 - paths of routes name its convertors
from strandline.api.http.auth import ACCESS
from strandline.api.http.bodies import body_of
from strandline.api.http.formats import FORMATS, JSON, exported, format_of, media_of
from strandline.api.http.problems import MEDIA, problem_of
from strandline.api.http.questions import Questions
from strandline.api.http.session import Session, SessionOf, address_of, client_of
from strandline.core.access.granted import Access
from strandline.core.redaction.text import redact_text
from strandline.core.stopping import go_on
from strandline.errors import BodyError, ParameterError, StrandlineError
from strandline.questions.answers import DUMPED
from strandline.questions.parameters import Query, reason_of
from strandline.store.audit import Entry, note

STRICT = "/api/v2/"  # clients of OpenLineage and Marquez send what they like
LONGEST_DETAILS = 1000
ANSWER_BYTES = 8 << 20  # of a page or a graph; a longer one is cut and says so
BODY = "strandline.body"  # where a request's scope has what the audit log tells of its body
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_PROBLEM = {
    "description": "a problem, told in its detail",
    "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the problems of a route besides those that every route has."""
    return dict.fromkeys(statuses, _PROBLEM)


class JsonRequest(Request):
    """A request whose body is read and parsed, and is JSON whatever its sender called it."""

    def __init__(self, request: Request, raw: bytes, document: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        self._document = document

    @property
    def headers(self) -> Headers:
        """The one header that FastAPI asks for."""
        return Headers({"content-type": "application/json"})

    async def body(self) -> bytes:
        """Return the body as it came."""
        return self._raw

    async def json(self) -> Any:
        """Return the content."""
        return self._document


class Route(APIRoute):
    """A method of a path.

    Its function gets a Session, whose type says the scope, and what FastAPI reads of the request. A
    plain function runs in a thread and returns what JSON should say (None: 204) or a Response; a
    coroutine function returns a Response.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        hints = get_type_hints(endpoint, include_extras=True)
        self.permission = _permission_of(path, hints)
        self.query = next((hint for hint in map(_query_of, hints.values()) if hint), None)
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = self._in_thread(endpoint)
        about = inspect.getdoc(endpoint) or ""
        options["summary"] = " ".join(about.partition("\n\n")[0].split())
        super().__init__(path, endpoint, **options)
        self.responses = self.responses | self._common_responses()
        self._names = _names_of(self.query)

    @property
    def method(self) -> str:
        """Its method; a path with several has a route for each."""
        (method,) = self.methods or ("GET",)
        return method

    @property
    def columns(self) -> tuple[str, ...]:
        """The properties that items of its list have, for CSV."""
        model = self.response_model
        items = get_type_hints(get_origin(model) or model or object).get("items")
        (item,) = get_args(items) or (None,)
        if isinstance(item, TypeVar):
            (item,) = get_args(model) or (None,)
        return tuple(get_type_hints(item)) if is_typeddict(item) else ()

    def get_route_handler(self) -> Handler:
        """Wrap FastAPI's handler in permission, parameters, body, audit and hiding."""
        handle = super().get_route_handler()

        async def permitted(request: Request) -> Response:
            self.permission.permit(request)
            try:
                return await self._read_and_handled(request, handle)
            except StrandlineError as error:
                access: Access = request.scope[ACCESS]
                if access.everything or self.permission.scope == "open":
                    raise
                session = self.permission.of(request)
                return await run_in_threadpool(_seen_refusal, problem_of(error), session)

        if self.permission.scope != "admin" or self.method == "GET":
            return permitted
        return partial(self._audited, permitted)

    async def _read_and_handled(self, request: Request, handle: Handler) -> Response:
        """Answer what FastAPI's handler answers to the request with its body read."""
        if self.path.startswith(STRICT) and request.scope["query_string"]:
            self._refuse_odd(request)
        if self.body_field is not None:
            state = request.app.state
            async with body_of(request, state.settings, state.room) as raw:
                needed = bool(raw) or self.body_field.field_info.is_required()
                document = await run_in_threadpool(parsed, raw) if needed else None
            request.scope[BODY] = document
            request = JsonRequest(request, raw, document)
        try:
            return await handle(request)
        except RequestValidationError as error:
            raise ParameterError(self._fault(error.errors()[0])) from None

    def _refuse_odd(self, request: Request) -> None:
        """Refuse parameters that are misspelt, and two of one name.

        The answer would be one to another question, as for a value that is not UTF-8.
        """
        for pair in request.scope["query_string"].split(b"&"):
            try:
                unquote_to_bytes(pair).decode()
            except UnicodeDecodeError:
                name = pair.partition(b"=")[0].decode("latin-1")
                raise ParameterError(
                    f"parameter {name} is not UTF-8: percent-encode its characters as UTF-8"
                ) from None
        parameters = [name for name, _ in request.query_params.multi_items()]
        for name in parameters:
            if name not in self._names:
                known = ", ".join(self._names) or "none"
                raise ParameterError(f"parameter {name!r} is not known here; known: {known}")
            if parameters.count(name) > 1 and not self._names[name]:
                raise ParameterError(f"parameter {name} is given more than once")

    def _in_thread(self, endpoint: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(endpoint)
        async def answered(**values: Any) -> Response:
            session: Session = values["session"]
            query = values.get("query")
            if self.permission.scope in ("ingest", "admin"):
                namespace = values.get("namespace", getattr(query, "namespace", None))
                if isinstance(namespace, str):
                    session.refuse_other_namespace(namespace)
            return await self.answer(session, partial(endpoint, **values), query)

        return answered

    async def answer(
        self, session: Session, ask: Callable[[], Any], query: Query | None = None
    ) -> Response:
        """Ask in a thread, and make the response there; a question's thread may be stopped."""
        run = partial(self._response, session, ask, query)
        scope = self.permission.scope
        if scope == "open" or (scope != "read" and self.method != "GET"):
            return await run_in_threadpool(run)
        questions: Questions = session.state.questions
        return await questions.answer(session.request, client_of(session.request), run)

    def _response(self, session: Session, ask: Callable[..., Any], query: Query | None) -> Response:
        """Return the answer in the requested form, without what its key does not see."""
        answer = ask()
        if isinstance(answer, Response):
            return answer
        if answer is None:
            return Response(status_code=204)
        go_on()
        content = orjson.dumps(answer, option=DUMPED)
        if self.permission.scope != "open" and not session.access.everything:
            answer = session.visible(orjson.loads(content))
            content = orjson.dumps(answer)
        shorter = _shorter(query, answer, len(content))
        if shorter is not None:
            del answer, content
            return self._response(session, partial(ask, query=shorter), shorter)
        if query is not None and query.exported_as is not None:
            format_name = getattr(query, "format", None)
            wanted = format_of(session.request, query.exported_as, format_name)
            if wanted != JSON:
                plain = orjson.loads(content)
                return exported(session.request, self.path, wanted, plain, self.columns)
        return Response(content, self.status_code or 200, media_type="application/json")

    async def _audited(self, permitted: Handler, request: Request) -> Response:
        """Note who asked to change something, whatever the answer."""
        try:
            response = await permitted(request)
        except StrandlineError as error:
            await run_in_threadpool(self._note, request, problem_of(error).status_code)
            raise
        await run_in_threadpool(self._note, request, response.status_code)
        return response

    def _note(self, request: Request, status: int) -> None:
        access: Access = request.scope[ACCESS]
        parameters = dict(request.query_params) | request.path_params
        if (body := request.scope.get(BODY)) is not None:
            parameters["body"] = body
        details = redact_text(orjson.dumps(parameters).decode())[:LONGEST_DETAILS]
        address = address_of(request)
        what = f"{request.method} {self.path_format}"
        state = request.app.state
        with state.engine.begin() as connection:
            note(connection, Entry(datetime.now(UTC), access.who, what, address, status, details))
        state.log.info(
            "audit", who=access.who, what=what, address=address, status=status, details=details
        )

    def _fault(self, fault: dict[str, Any]) -> str:
        """Say what FastAPI found wrong, with the name under which it was sent."""
        where, *place = fault["loc"]
        reason = reason_of(fault)
        if where == "body":
            path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
            return f"invalid body: {f'${path} ' if path else ''}{reason}"
        if not place or reason.startswith("parameter "):
            return reason
        if fault["type"] == "missing" and self.query is not None:
            about = {
                field.alias or name: field.description
                for name, field in self.query.model_fields.items()
            }
            reason = f"is missing: {about.get(str(place[0]))}"
        return f"parameter {place[0]} {reason}"

    def _common_responses(self) -> dict[int | str, dict[str, Any]]:
        """Describe the answers that a route has by its kind."""
        statuses = [400, 401, 503]
        if self.permission.scope in ("read", "admin"):
            statuses.append(429)
        if self.permission.scope != "open":
            statuses.append(403)
        if self.body_field is not None:
            statuses.append(413)
        kind = self.query.exported_as if self.query else None
        described = refused(*statuses)
        if kind is not None:
            texts = {media_of(name): {"schema": {"type": "string"}} for name in FORMATS[kind][1:]}
            described[200] = {"content": texts}
        return described


class PlainRoute(Route):
    """A route whose function reads the request by itself, for what is sent all the time."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.app = request_response(self._handled)

    async def _handled(self, request: Request) -> Response:
        self.permission.permit(request)
        session = self.permission.of(request)
        try:
            response: Response = await self.endpoint(session)
        except StrandlineError as error:
            if session.access.everything:
                raise
            return await run_in_threadpool(_seen_refusal, problem_of(error), session)
        return response


def with_slashes(routers: Iterable[APIRouter]) -> list[Route]:
    """Return routes of the same functions whose names may hold slashes.

    Some clients and proxies do not encode them. The path that says most of itself comes first.
    """
    routes = [
        Route(
            re.sub(r":name\}", ":slashed}", route.path),
            route.endpoint,
            methods=route.methods,
            status_code=route.status_code,
            response_model=route.response_model,
            include_in_schema=False,
        )
        for router in routers
        for route in router.routes
        if isinstance(route, Route) and "{" in route.path
    ]
    return sorted(routes, key=lambda route: -sum("{" not in part for part in route.path.split("/")))


def route_of(scope: Scope) -> str:
    """Return the path as it was declared, once it is routed.

    `page` for a file of the page, `none` for what is not there.
    """
    route = scope.get("route")
    if isinstance(route, APIRoute):
        return route.path_format
    return "page" if "endpoint" in scope else "none"


def parsed(raw: bytes) -> Any:
    """Return the document that a body is; raise a BodyError if it is none."""
    try:
        document = orjson.loads(raw)
    except ValueError as error:
        raise BodyError(f"the body is not JSON: {error}") from None
    if b"\\u0000" in raw and _has_nul(document):
        raise BodyError("the body has a character (U+0000) that no name can have")
    return document


def _has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(text) for pair in value.items() for text in pair)
    if isinstance(value, list):
        return any(map(_has_nul, value))
    return isinstance(value, str) and "\x00" in value


def _seen_refusal(refusal: Response, session: Session) -> Response:
    """Return a refusal without the names that the request's key does not see."""
    refusal.body = orjson.dumps(session.visible(orjson.loads(refusal.body)))
    refusal.headers["content-length"] = str(len(refusal.body))
    return refusal


def _shorter(query: Query | None, answer: Any, size: int) -> Query | None:
    """Return the question of which the answer is short enough to be sent, None if this one is.

    Only an answer that says itself where it ends is shortened: a page by its cursor, a graph by
    `truncatedBy`.
    """
    if size <= ANSWER_BYTES or query is None or "limit" not in type(query).model_fields:
        return None
    if "nextCursor" not in answer and "truncatedBy" not in answer:
        return None
    count = len(answer.get("items") or answer.get("nodes") or ())
    if count <= 1:
        return None
    fewer = count * ANSWER_BYTES * 9 // 10 // size
    return query.model_copy(update={"limit": max(fewer, 1)})


def _permission_of(path: str, hints: dict[str, Any]) -> SessionOf:
    """Return the permission in a function's annotations; raise a TypeError if it has none."""
    for hint in hints.values():
        for mark in getattr(hint, "__metadata__", ()):
            if isinstance(dependency := getattr(mark, "dependency", None), SessionOf):
                return dependency
    raise TypeError(f"{path} has no session, so no scope: annotate a parameter `session`")


def _query_of(hint: Any) -> type[Query] | None:
    (model, *_) = get_args(hint) or (hint,)
    return model if inspect.isclass(model) and issubclass(model, Query) else None


def _names_of(query: type[Query] | None) -> dict[str, bool]:
    """Return the names of a query's parameters, needed ones first, and which may come twice."""
    fields = query.model_fields if query is not None else {}
    ordered = sorted(fields.items(), key=lambda pair: not pair[1].is_required())
    return {field.alias or name: get_origin(field.annotation) is tuple for name, field in ordered}
