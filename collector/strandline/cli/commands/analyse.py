"""`strandline analyse`: reports over a whole store or archive, computed on Spark; as tables, and their first rows here."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

from strandline.analysis.archived_store import archived_store
from strandline.analysis.closure import Limits
from strandline.analysis.effort import is_small, session_conf, small_queries
from strandline.analysis.publishing import MOMENTS, publish_reports
from strandline.analysis.report import (
    REPORTS,
    WITHOUT,
    Analysis,
    AnalysisRequest,
    Shown,
    analyse,
    named_rows,
    report_of,
)
from strandline.cli.answers import number, show, show_table, tell, time_argument
from strandline.cli.command import Command
from strandline.cli.open_store import existing_store
from strandline.core.labels import told_apart
from strandline.core.openlineage.times import micros_of, moment_of
from strandline.errors import SettingsError
from strandline.history.session import spark_arguments, spark_session
from strandline.settings import Settings
from strandline.store.analyses import MOST
from strandline.store.lineage.lookup import job_called
from strandline.store.lineage.relations import View, jobs_called
from strandline.store.sql.engine import reading

Json = dict[str, Any]
DAYS = 7
MOST_PAIRS = Limits().most_pairs
NODES = ("dataset", "other", "newest_input", "job")  # the cells that hold ids of nodes


def arguments(parser: ArgumentParser) -> None:
    """What is asked, of which events, and where the tables go."""
    parser.add_argument(
        "--from", dest="source", default="", metavar="ARCHIVE",
        help="analyse what strandline archive wrote instead of the store: a folder, delta:FOLDER, or iceberg:CATALOG.DATABASE.TABLE",
    )  # fmt: skip
    parser.add_argument(
        "--like",
        metavar="DATABASE_URL",
        help="with --from: take path patterns and names joined by hand from this store",
    )
    parser.add_argument(
        "--publish", action="store_true",
        help=f"keep the first {MOST} rows of each report in the store, for GET /api/v2/analyses",
    )  # fmt: skip
    parser.add_argument(
        "--to", default="", metavar="TARGET",
        help="write the tables there: a folder for Parquet, delta:FOLDER, or iceberg:CATALOG.DATABASE (Spark's catalog)",
    )  # fmt: skip
    parser.add_argument(
        "--report", action="append", choices=list(REPORTS), help="this report only; may be repeated (default: all)"
    )
    parser.add_argument(
        "--without-job", action="append", default=[], metavar="JOB",
        help="what happens if this job goes: its name, or job:NAMESPACE:NAME; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--state", choices=("known", "newest"), default="known",
        help="each job's last runs, or its newest run alone (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--stale", type=time_argument, metavar="TIME",
        help=f"what was written before this moment is stale: 30d, 2026-11-20T12:00:00Z (default: {DAYS}d)",
    )  # fmt: skip
    parser.add_argument("--depth", type=number(1, 10_000), help="jobs or edges on the way at most (default: all)")
    parser.add_argument(
        "--most-pairs", type=number(1, 10**12), default=MOST_PAIRS, metavar="PAIRS",
        help="end a closure before it has more pairs than this, and say so (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--top", type=number(1, 10_000), default=10, help="rows shown of each report (default: 10)")
    parser.add_argument(
        "--scratch", default="", metavar="FOLDER", help="for intermediate files; on a cluster a folder that all share"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    spark_arguments(parser)


def run(options: Namespace, settings: Settings) -> int:
    """Analyse, and show the first rows of every report."""
    now = datetime.now(UTC)
    if options.like and not options.source:
        raise SettingsError(["analyse: --like goes with --from: a store has its own names"])
    if options.publish:
        existing_store(settings).dispose()
    asked = None if options.source else _asked(options, settings, now)
    if options.master.startswith("local"):
        own = session_conf(small=asked is not None and asked.limits.small)
        options.conf[:0] = [f"{name}={value}" for name, value in own.items()]
    with (
        spark_session(options) as spark,
        TemporaryDirectory(prefix="strandline-analyse-", dir=options.scratch or None) as scratch,
    ):
        archived, url = None, settings.database_url
        if asked is None:
            archived = archived_store(spark, options.source, options.like, scratch)
            url = archived.url
            asked = _asked(options, replace(settings, database_url=url), now)
        limits = asked.limits.spread(spark.sparkContext.defaultParallelism)
        with small_queries(spark, small=limits.small):
            found = analyse(spark, url, asked._replace(limits=limits), scratch)
            shown = _reported(options, settings, found, asked)
    answer = {"asOf": now.isoformat(), "state": options.state, "closures": found.closures, "reports": shown}
    if archived:
        answer["archive"] = {"events": archived.rebuilt.events, "refused": len(archived.rebuilt.refused)}
    if options.json:
        tell(True, answer, lambda: ())
    else:
        _show(answer, found, asked)
    return 0


def _reported(options: Namespace, settings: Settings, found: Analysis, asked: AnalysisRequest) -> Json:
    """The first rows of the reports; those that the API answers are put into the store."""
    shapes = dict(_reports(asked))
    most = max(options.top, MOST) if options.publish else options.top
    reports = {name: report_of(found, how, most) for name, how in shapes.items()}
    if options.publish:
        engine = existing_store(settings)
        try:
            publish_reports(engine, found, asked, reports)
        finally:
            engine.dispose()
    return {
        name: named_rows(found, how, reports[name]._replace(rows=reports[name].rows[: options.top]))
        for name, how in shapes.items()
    }


def _asked(options: Namespace, settings: Settings, now: datetime) -> AnalysisRequest:
    view = View(micros_of(now), newest=options.state == "newest")
    reports = tuple(options.report or (() if options.without_job else REPORTS))
    engine = existing_store(settings)
    try:
        with reading(engine).connect() as connection:
            named = [job_called(connection, name).id for name in options.without_job]
            without = tuple({job for one in named for job in jobs_called(connection, one)})
            limits = Limits(options.depth, options.most_pairs, small=is_small(connection))
    finally:
        engine.dispose()
    stale = options.stale or now - timedelta(days=DAYS)
    return AnalysisRequest(view, limits, micros_of(stale), reports, without, options.to)


def _reports(asked: AnalysisRequest) -> Iterable[tuple[str, Shown]]:
    yield from ((name, REPORTS[name]) for name in asked.reports)
    if asked.without:
        yield "removal", WITHOUT


def _show(answer: Json, found: Analysis, asked: AnalysisRequest) -> None:
    if archive := answer.get("archive"):
        refused = f", {archive['refused']} refused" if archive["refused"] else ""
        show([f"{archive['events']} archived events{refused}", ""])
    for name, report in answer["reports"].items():
        _show_report(name, report)
    for name, outcome in found.closures.items():
        if not outcome["complete"]:
            limit = "--most-pairs" if outcome["truncatedBy"] == "pairs" else "--depth"
            show([f"the closure of {name} ends after {outcome['depth']} steps ({limit}): counts are lower bounds"])
    if asked.target:
        show([f"tables in {asked.target}: {', '.join(sorted(found.tables))}"])


def _show_report(name: str, report: Json) -> None:
    show([f"{name}: {report['about']} ({report['total']})"])
    if report["rows"]:
        names = told_apart(report["labels"])
        show_table([one.upper() for one in report["rows"][0]], [_cells(row, names) for row in report["rows"]])
    show([""])


def _cells(row: Json, names: Mapping[str, str]) -> list[str]:
    return [_cell(name, names.get(value, value) if name in NODES else value) for name, value in row.items()]


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in MOMENTS:
        return f"{moment_of(value):%Y-%m-%d %H:%M}"
    if name == "day":
        return f"{moment_of(value * 86_400_000_000):%Y-%m-%d}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


ANALYSE = Command("analyse", run, arguments)
