"""The ASGI application: every operation of this package around one engine, with keys, problems and metrics.

`create_app` makes no connection and starts nothing; its lifespan starts the writer, and ends it when all is written.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from structlog.typing import FilteringBoundLogger

from strandline.api.endpoints.health import Check
from strandline.api.endpoints.versions import LOOKS_AT_ONCE
from strandline.api.http.auth import RequireKey, granting
from strandline.api.http.bodies import Room
from strandline.api.http.browsers import RefuseForeignPages, hosts_of
from strandline.api.http.observation import ObserveRequests
from strandline.api.http.operations import operations
from strandline.api.http.problems import NOBODYS, on_error
from strandline.api.http.questions import Questions
from strandline.api.http.rates import Rates, rates_of
from strandline.api.http.routing import routes_of
from strandline.api.writer.group_commit import Writer
from strandline.api.writer.refusals import Refusals
from strandline.api.writer.senders import Senders
from strandline.api.writer.writing_process import WritingProcess, decode_and_write
from strandline.errors import StrandlineError
from strandline.logs import Bugs, make_log
from strandline.metrics import Metrics
from strandline.runtime.attendance import attendance
from strandline.runtime.coordinator import Intervals
from strandline.runtime.follower import Follower
from strandline.runtime.job_memory import JobMemory
from strandline.runtime.periodic import Turns
from strandline.settings import Settings
from strandline.store.ingest.transactions import Batches
from strandline.web import pages


def create_app(
    engine: Engine,
    settings: Settings,
    *,
    log: FilteringBoundLogger | None = None,
    metrics: Metrics | None = None,
    checks: Mapping[str, Check] | None = None,
    follower: Follower | None = None,
    in_process: bool = True,
) -> Starlette:
    """The application on a migrated database; `checks` are further reasons not to be ready.

    Not `in_process`: what is sent is written by a process of its own, so that answers do not wait
    for it.
    """
    declared = operations()
    log = log or make_log(settings.log_format, settings.log_level)
    grant = granting(
        engine, settings, lambda why: log.warning("keys of the identity provider", reason=why)
    )
    names = hosts_of(settings.host, settings.allowed_hosts)
    middleware = [
        Middleware(ObserveRequests),
        Middleware(RefuseForeignPages, hosts=names),
        Middleware(RequireKey, grant=grant),
    ]
    app = Starlette(
        routes=[*routes_of(declared), *pages.routes(grant)],
        middleware=middleware,
        exception_handlers=dict.fromkeys(
            (StrandlineError, HTTPException, *NOBODYS, Exception), on_error
        ),
        lifespan=_lifespan,
    )
    state = app.state
    state.engine, state.settings, state.operations = engine, settings, declared
    state.log = log
    state.metrics = metrics or Metrics()
    state.checks = checks or {}
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
    state.looking = asyncio.Semaphore(LOOKS_AT_ONCE)
    state.stopping = lambda: False
    state.questions = Questions(settings.question_seconds)
    state.room = Room(settings.max_waiting_bytes, state.metrics.waiting_bytes)
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
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
    process.start()
    return process


def _attending(state: State) -> Turns:
    settings = state.settings
    intervals = Intervals(
        settings.barrier_seconds, settings.barrier_timeout_seconds, settings.resume_seconds
    )
    return attendance(
        state.engine,
        state.follower,
        intervals,
        lambda why: state.log.warning("versions are not attended to", reason=why),
    )
