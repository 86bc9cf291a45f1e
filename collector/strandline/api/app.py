"""The ASGI application: every operation around one engine, with keys, problems and metrics.

`create_app` makes no connection and starts nothing; its lifespan starts the writer, and ends it
when all is written.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from structlog.typing import FilteringBoundLogger

from strandline.api.http.auth import RequireKey, granting
from strandline.api.http.bodies import Room
from strandline.api.http.browsers import RefuseForeignPages, hosts_of
from strandline.api.http.document import openapi_of
from strandline.api.http.observation import ObserveRequests
from strandline.api.http.problems import NOBODYS, on_error
from strandline.api.http.questions import SHORT, Questions
from strandline.api.http.rates import Rates, rates_of
from strandline.api.http.raw_paths import RawPaths
from strandline.api.http.route import Route, with_slashes
from strandline.api.http.sending import AnswerRoom, BoundAnswers
from strandline.api.marquez import ROUTERS as MARQUEZ
from strandline.api.routers import (
    audit,
    board,
    catalog,
    catalog_options,
    forgetting,
    groups,
    health,
    ingest,
    keys,
    lineage,
    overview,
    received,
    registration,
    tables,
    versions,
)
from strandline.api.routers.health import Check
from strandline.api.routers.tables import TABLES_AT_ONCE
from strandline.api.routers.versions import LOOKS_AT_ONCE
from strandline.api.writer.group_commit import Writer
from strandline.api.writer.refusals import Refusals
from strandline.api.writer.senders import Senders
from strandline.api.writer.writing_process import WritingProcess, decode_and_write
from strandline.errors import StrandlineError
from strandline.logs import Bugs, make_log
from strandline.metrics import Metrics
from strandline.runtime.coordinator import Intervals, attendance
from strandline.runtime.follower import Follower
from strandline.runtime.heap import bytes_in_use
from strandline.runtime.job_memory import JobMemory
from strandline.runtime.periodic import Turns
from strandline.settings import Settings
from strandline.store.ingest.transactions import Batches
from strandline.web import pages

ANSWERS_OF_MEMORY = 8  # the part of the memory that answers may take while they are read
ROUTERS = (
    ingest.router,  # first, because it is asked most
    health.router,
    *(module.router for module in (lineage, catalog, received, versions, groups, board, overview)),
    *(module.router for module in (tables, audit, keys, catalog_options, forgetting, registration)),
    *MARQUEZ,
)
SLASHED = with_slashes(MARQUEZ)


def declared_routes() -> list[Route]:
    """Return the routes of the document; a literal segment beats a parameter."""
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, Route)]
    return sorted(routes, key=lambda route: route.path.count("{"))


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document. It takes half a second, and depends on the routes alone."""
    return openapi_of(declared_routes())


def create_app(
    engine: Engine,
    settings: Settings,
    *,
    log: FilteringBoundLogger | None = None,
    metrics: Metrics | None = None,
    checks: Mapping[str, Check] | None = None,
    follower: Follower | None = None,
    in_process: bool = True,
) -> FastAPI:
    """Return the application on a migrated database; `checks` are further reasons not to be ready.

    Not `in_process`: what is sent is written by a process of its own, so that answers do not wait
    for it.
    """
    log = log or make_log(settings.log_format, settings.log_level)
    all_checks = dict(checks or {})
    grant = granting(
        engine,
        settings,
        lambda why: log.warning("keys of the identity provider", reason=why),
        all_checks,
    )
    names = hosts_of(settings.host, settings.allowed_hosts)
    answer_room = AnswerRoom(settings.memory_bytes // ANSWERS_OF_MEMORY)
    middleware = [
        Middleware(RawPaths),
        Middleware(ObserveRequests),
        Middleware(BoundAnswers, room=answer_room),
        Middleware(RefuseForeignPages, hosts=names),
        Middleware(RequireKey, grant=grant),
    ]
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=middleware,
        exception_handlers=dict.fromkeys(
            (StrandlineError, HTTPException, *NOBODYS, Exception), on_error
        ),
        lifespan=_lifespan,
    )
    app.openapi = document  # type: ignore[method-assign]
    # Without include_router, which tries each path twice.
    app.router.routes.extend([*declared_routes(), *SLASHED, *pages.routes(grant)])
    state = app.state
    state.engine, state.settings = engine, settings
    state.log = log
    state.metrics = metrics or Metrics()
    state.damage = None
    state.checks = {"damage": lambda: state.damage, **all_checks}
    state.in_process = in_process
    state.follower = follower or Follower(engine)
    state.graph = JobMemory(settings.graph_bytes)
    state.metrics.kept.graph_bytes.set_function(lambda: state.graph.size)
    state.refusals = Refusals(
        engine,
        lambda why: state.log.warning("rejected events are not counted", reason=why),
        lambda code: state.metrics.refused.labels(code).inc(),
    )
    state.senders = Senders(engine)
    state.rates = Rates(
        rates_of(settings), lambda scope: state.metrics.over_rate.labels(scope).inc()
    )
    state.table_room = AnswerRoom(TABLES_AT_ONCE)
    state.looking = asyncio.Semaphore(LOOKS_AT_ONCE)
    state.stopping = lambda: False
    memory, most = state.metrics.memory, settings.memory_bytes
    state.questions = Questions(
        settings.question_seconds, lambda: bytes_in_use(memory.total, SHORT * most) / most
    )
    state.answer_room = answer_room
    state.room = Room(settings.max_waiting_bytes, state.metrics.waiting_bytes)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    batches = _batches(state)
    state.writer = Writer(
        batches.write
        if isinstance(batches, WritingProcess)
        else partial(decode_and_write, write=batches.write_or_keep),
        max_waiting=state.settings.max_waiting,
        batch_records=state.settings.batch_records,
        metrics=state.metrics,
        log=state.log,
    )
    attending = _attending(state)
    state.writer.start()
    state.refusals.start()
    attending.start()
    state.questions.start()
    try:
        yield
    finally:
        await state.questions.end()
        await run_in_threadpool(attending.stop)
        await run_in_threadpool(state.writer.stop)
        await run_in_threadpool(state.refusals.stop)
        if isinstance(batches, WritingProcess):
            await run_in_threadpool(batches.stop)


def _batches(state: State) -> Batches | WritingProcess:
    follower, on_retry = state.follower, state.metrics.retries.labels("http").inc
    if state.in_process:
        return Batches(state.engine, on_retry, follower.take_news, follower.follow, Bugs(state.log))
    process = WritingProcess(state.settings, on_retry, follower.follow)
    state.metrics.memory.writer = lambda: process.pid
    process.start()
    return process


def _attending(state: State) -> Turns:
    settings = state.settings
    intervals = Intervals(settings.barrier_seconds, settings.resume_seconds)
    return attendance(
        state.engine,
        state.follower,
        intervals,
        lambda why: state.log.warning("versions are not updated", reason=why),
    )
