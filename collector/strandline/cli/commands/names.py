"""`strandline names`: join names of one dataset or job, or strip parts of paths.

A change is printed first, and applied with --apply.
"""

import re
from argparse import Namespace
from typing import Any

from sqlalchemy import Connection

from strandline.cli.answers import show, tell_list
from strandline.cli.collector import PAGE, source_of
from strandline.cli.open_store import existing_store
from strandline.errors import ParameterError, SettingsError
from strandline.settings import Settings
from strandline.store.ingest.job_names import apply_families, planned_families
from strandline.store.ingest.name_patterns import (
    Renaming,
    apply_alias,
    apply_patterns,
    planned_alias,
    planned_patterns,
)

Json = dict[str, Any]
NAMED = (("namespace", "name"), ("other_namespace", "other_name"))


def run(options: Namespace, settings: Settings) -> int:
    """Show what is joined; or what would change, and change it if asked to."""
    if options.kind is None:
        return _list(options, settings)
    if options.kind == "jobs" and not options.patterns:
        return _list_similar_jobs(options, settings)
    if options.url:
        changed_in = "changes names in the database itself"
        way = "set STRANDLINE_DATABASE_URL (--database-url)"
        raise SettingsError([f"--url: names {options.kind} {changed_in}; {way}"])
    engine = existing_store(settings)
    try:
        with engine.begin() as connection:
            plan = _plan(connection, options)
    except re.error as error:
        raise ParameterError(f"invalid regular expression: {error.pattern!r}: {error}") from None
    finally:
        engine.dispose()
    rows = [
        {"namespace": named.namespace, "name": named.name, "becomes": named.new_name}
        for named in plan
    ]
    kind = "jobs" if options.kind == "jobs" else "datasets"
    answer = {"applied": options.apply, kind: rows}
    if not tell_list(options, answer, rows, columns=("namespace", "name", "becomes")):
        show(_lines(plan, kind.removesuffix("s"), is_applied=options.apply))
    return 0


def _list(options: Namespace, settings: Settings) -> int:
    """Print the patterns, and the datasets that have several names."""
    with source_of(options, settings) as source:
        answer = source.pages("/names", {}, options.limit)
    rows = answer["items"]
    cut = f"the first {len(rows)}; --limit shows more" if answer["nextCursor"] else ""
    if not tell_list(options, answer, rows, cut, ("namespace", "name", "alsoCalled")):
        show(_listed(answer))
    return 0


def _listed(answer: Json) -> list[str]:
    lines = [
        f"joined jobs: {family['namespace']} {family['pattern']}" for family in answer["families"]
    ]
    lines += [f"stripped from paths: {pattern}" for pattern in answer["patterns"]]
    for dataset in answer["items"]:
        lines.append(f"{dataset['namespace']} {dataset['name']}")
        lines += [
            f"  also {other['namespace']} {other['name']}  ({', '.join(other['reasons'])})"
            for other in dataset["alsoCalled"]
        ]
    if answer["nextCursor"]:
        lines.append(
            f"(the first {len(answer['items'])} datasets; {answer['joined']} names are joined: "
            "--limit shows more)"
        )
    return lines or [
        (
            "every dataset has one name; `strandline names join` or `strip` lets several "
            "names be one dataset"
        )
    ]


def _list_similar_jobs(options: Namespace, settings: Settings) -> int:
    """Print the families of job names, of a namespace if one is named."""
    question = {"namespace": options.namespace, "limit": min(options.limit, PAGE)}
    with source_of(options, settings) as source:
        answer = source.ask("/names/jobs", question)
    rows = answer["items"]
    cut = "" if answer["complete"] else f"the first {len(rows)}; --limit shows more"
    columns = ("namespace", "pattern", "jobs", "sure", "example")
    if not tell_list(options, answer, rows, cut, columns):
        show(_similar_lines(rows, cut))
    return 0


def _similar_lines(rows: list[Json], cut: str) -> list[str]:
    lines = []
    for row in rows:
        doubt = "" if row["sure"] else ", perhaps different jobs"
        count = f"{row['jobs']} jobs{doubt}, such as {row['example']}"
        lines.append(f"{row['namespace']} {row['pattern']}  ({count})")
    if cut:
        lines.append(f"({cut})")
    return lines or ["no names of jobs differ only in a date, an id or a number"]


def _plan(connection: Connection, options: Namespace) -> list[Renaming]:
    """Return the changes; with --apply make them in the same transaction."""
    if options.kind == "strip":
        plan = planned_patterns(connection, options.patterns)
        if options.apply:
            apply_patterns(connection, options.patterns)
        return plan
    if options.kind == "jobs":
        plan = planned_families(connection, options.namespace, options.patterns)
        if options.apply:
            apply_families(connection, options.namespace, options.patterns)
        return plan
    first, other = (
        (getattr(options, namespace), getattr(options, name)) for namespace, name in NAMED
    )
    plan = planned_alias(connection, first, other)
    if options.apply:
        apply_alias(connection, first, other)
    return plan


def _lines(plan: list[Renaming], kind: str, *, is_applied: bool) -> list[str]:
    lines = [f"{named.namespace} {named.name} -> {named.new_name}" for named in plan] or [
        f"no {kind} changes its name"
    ]
    return lines if is_applied or not plan else [*lines, "nothing is changed yet: say --apply"]
