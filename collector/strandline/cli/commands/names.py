"""`strandline names`: names that are one dataset or job; strip parts of paths, or join names.

Tried first, then applied.
"""

import re
from argparse import Namespace

from sqlalchemy import Connection, Engine, select

from strandline.cli.answers import show, tell_list
from strandline.cli.open_store import existing_store
from strandline.core.job_families import JobFamily, families_of
from strandline.errors import ParameterError
from strandline.settings import Settings
from strandline.store.ingest.job_names import apply_families, planned_families
from strandline.store.ingest.name_patterns import (
    Renaming,
    apply_alias,
    apply_patterns,
    planned_alias,
    planned_patterns,
)
from strandline.store.lineage.joined_names import JoinedNames, joined_count, joined_names
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.engine import reading
from strandline.store.sql.shared_settings import agreed_naming, strip_patterns

NAMED = (("namespace", "name"), ("other_namespace", "other_name"))


def run(options: Namespace, settings: Settings) -> int:
    """Show what is joined; or what would change, and change it if asked to."""
    engine = existing_store(settings)
    try:
        if options.kind is None:
            return _list(engine, options)
        if options.kind == "jobs" and not options.patterns:
            return _list_families(engine, options)
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


def _list(engine: Engine, options: Namespace) -> int:
    """Print the patterns, and the datasets that have several names."""
    with reading(engine).connect() as connection:
        patterns = strip_patterns(connection)
        families = sorted(agreed_naming(connection).families)
        joined, more = joined_names(connection, options.limit)
        count = joined_count(connection)
    rows = [
        {
            "namespace": alias.namespace,
            "name": alias.name,
            "alsoCalled": [other._asdict() for other in alias.others],
        }
        for alias in joined
    ]
    answer = {
        "patterns": patterns,
        "families": [{"namespace": namespace, "pattern": name} for namespace, name in families],
        "datasets": rows,
        "complete": more is None,
    }
    cut = "" if more is None else f"the first {len(rows)}; --limit shows more"
    if not tell_list(options, answer, rows, cut, ("namespace", "name", "alsoCalled")):
        lines = [f"joined jobs: {namespace} {pattern}" for namespace, pattern in families]
        show([*lines, *_listed(patterns, joined, count, more)])
    return 0


def _list_families(engine: Engine, options: Namespace) -> int:
    """Print the families of job names, of a namespace if one is named."""
    query = select(jobs.c.namespace, jobs.c.name)
    if options.namespace is not None:
        query = query.where(jobs.c.namespace == options.namespace)
    with reading(engine).connect() as connection:
        named = connection.execute(query).all()
    families = families_of((row.namespace, row.name) for row in named)
    rows = [
        {
            "namespace": family.namespace,
            "pattern": family.pattern,
            "jobs": len(family.names),
            "sure": family.is_sure,
            "example": family.names[0],
        }
        for family in families[: options.limit]
    ]
    complete = len(families) <= options.limit
    cut = "" if complete else f"the first {len(rows)}; --limit shows more"
    answer = {"families": rows, "complete": complete}
    columns = ("namespace", "pattern", "jobs", "sure", "example")
    if not tell_list(options, answer, rows, cut, columns):
        show(_family_lines(families[: options.limit], cut))
    return 0


def _family_lines(families: list[JobFamily], cut: str) -> list[str]:
    lines = []
    for family in families:
        doubt = "" if family.is_sure else ", perhaps different jobs"
        count = f"{len(family.names)} jobs{doubt}, such as {family.names[0]}"
        lines.append(f"{family.namespace} {family.pattern}  ({count})")
    if cut:
        lines.append(f"({cut})")
    return lines or ["no names of jobs differ only in a date, an id or a number"]


def _listed(
    patterns: list[str], joined: list[JoinedNames], count: int, more: str | None
) -> list[str]:
    lines = [f"stripped from paths: {pattern}" for pattern in patterns]
    for alias in joined:
        lines.append(f"{alias.namespace} {alias.name}")
        lines += [
            f"  also {other.namespace} {other.name}  ({', '.join(other.reasons)})"
            for other in alias.others
        ]
    if more is not None:
        lines.append(
            f"(the first {len(joined)} datasets; {count} names are joined: --limit shows more)"
        )
    return lines or [
        (
            "every dataset has one name; `strandline names join` or `strip` lets several "
            "names be one dataset"
        )
    ]


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
