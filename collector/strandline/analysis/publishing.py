"""The first rows of the reports of an analysis, for the store: what GET /api/v2/analyses answers until the next one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine

from strandline.analysis.report import OF_DATASETS, REPORTS, Analysis, AnalysisRequest, FirstRows, Shown
from strandline.core.openlineage.times import moment_of
from strandline.store.analyses import PublishedReport, PublishedRow, publish

Json = dict[str, Any]
MOMENTS = ("newest_at", "written_at", "read_at")
OF_COLUMNS = ("columns", "unused")


def publish_reports(
    engine: Engine, analysis: Analysis, asked: AnalysisRequest, reports: Mapping[str, FirstRows]
) -> None:
    """Put these reports in the place of those before, in one transaction; a removal is the answer to one question, and is not."""
    with engine.begin() as connection:
        for name in asked.reports:
            publish(connection, _published(name, analysis, asked, reports[name]))


def _published(name: str, analysis: Analysis, asked: AnalysisRequest, report: FirstRows) -> PublishedReport:
    how = REPORTS[name]
    state = "newest" if asked.view.newest else "known"
    rows = [_row(row, how) for row in report.rows]
    return PublishedReport(name, how.about, asked.view.at, state, report.total, _ended(name, analysis), rows)


def _ended(name: str, analysis: Analysis) -> str | None:
    """What cut off a closure that the report counts in."""
    used = () if name == "delays" else ("columns",) if name in OF_COLUMNS else ("datasets",)
    outcomes = (analysis.closures[one]["truncatedBy"] for one in used)
    return next((str(reason) for reason in outcomes if reason), None)


def _row(row: Json, how: Shown) -> PublishedRow:
    subject = row["dataset"] if "dataset" in how.columns else row["id"]
    names = [name for name in how.columns if name != "job" and name not in OF_DATASETS]
    return PublishedRow(subject, row.get("other"), {_name(name): _value(name, row[name]) for name in names})


def _name(name: str) -> str:
    """A column's name as the API spells it.

    >>> _name("seconds_after_birth_p50")
    'secondsAfterBirthP50'
    """
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in MOMENTS:
        return moment_of(value).isoformat()
    if name == "day":
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=value):%Y-%m-%d}"
    return value
