"""The errors of failed runs and of those below them, and steps that a producer could not follow.

A run's message is that of its `errorMessage` facet, else the first line of the stack trace that the
stock Spark listener puts into `spark.exception`. Its reason is the message, else that of the first
run below it that failed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import (
    Connection,
    Select,
    func,
    select,
)

from strandline.core.openlineage.facets import RUN
from strandline.core.openlineage.run_states import FAIL
from strandline.store.lineage.facets import newest_facet_rows
from strandline.store.lineage.nested_commands import IS_NAMED_AS_INNER, nested_runs
from strandline.store.lineage.run_state import MOMENT
from strandline.store.schema.run_tables import jobs, run_parents, runs
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among, among_given

Answer = dict[str, Any]

MESSAGE, STACK, EXTRACTION = "errorMessage", "spark.exception", "extractionError"
LEVELS = 4  # a DAG, its task, the Spark application, the statement


def failures(
    connection: Connection, run_ids: Iterable[int], moment: int | None = None
) -> dict[int, str]:
    """The reasons of those of these runs (by row id) that have one.

    Of a past moment, by what had failed then.
    """
    below = {run: run for run in run_ids}  # where the reason of each is looked for
    found: dict[int, str] = {}
    for _ in range(LEVELS):
        if not below:
            break
        messages = messages_of(connection, below.values(), moment)
        found |= {run: messages[at] for run, at in below.items() if at in messages}
        unexplained = {run: at for run, at in below.items() if run not in found}
        failed = _first_failed(connection, list(unexplained.values()), moment)
        below = {run: failed[at] for run, at in unexplained.items() if at in failed}
    return found


def messages_of(
    connection: Connection, run_ids: Iterable[int], moment: int | None = None
) -> dict[int, str]:
    """The message of each of these runs that has one.

    Of a past moment, if no later event states it again.
    """
    messages: dict[int, str] = {}
    for run, key, body in _newest(connection, run_ids, (MESSAGE, STACK), moment):
        message = _message(key, msgspec.json.decode(expand(body)))
        if message and (key == MESSAGE or run not in messages):
            messages[run] = message
    return messages


def _message(key: str, facet: Mapping[str, Any]) -> str:
    message = facet.get("message" if key == MESSAGE else "stackTrace")
    text = message.strip() if isinstance(message, str) else ""
    return text if key == MESSAGE else text.partition("\n")[0].strip()


def opaque_steps(connection: Connection, run_ids: Iterable[int]) -> dict[int, list[str]]:
    """The steps of each of these runs through which its producer could not follow rows.

    `task` in `extractionError`.
    """
    rows = _newest(connection, run_ids, (EXTRACTION,))
    return {run: _tasks(msgspec.json.decode(expand(body))) for run, _, body in rows}


def _tasks(facet: Mapping[str, Any]) -> list[str]:
    errors = facet.get("errors")
    tasks = (
        (error.get("task") for error in errors if isinstance(error, dict))
        if isinstance(errors, list)
        else ()
    )
    return [task for task in tasks if isinstance(task, str) and task]


def _newest(
    connection: Connection, run_ids: Iterable[int], keys: Collection[str], moment: int | None = None
) -> Iterator[tuple[int, str, bytes]]:
    """(run, key, packed body) of the facets of these keys that runs have."""
    rows = newest_facet_rows(connection, (RUN,), {run: run for run in run_ids}, keys)
    for (run, key), row in rows.items():
        if moment is None or row.at <= moment:
            yield run, key, row.content


def _first_failed(
    connection: Connection, run_ids: Iterable[int], moment: int | None
) -> dict[int, int]:
    """The run below each of these that failed first: the others mostly failed because of it."""
    query = (
        select(run_parents.c.parent_run_id, runs.c.id)
        .join(runs, runs.c.id == run_parents.c.run_id)
        .where(among(run_parents.c.parent_run_id, run_ids), runs.c.state == FAIL)
        .where(*([] if moment is None else [runs.c.ended_at <= moment]))
        .order_by(runs.c.ended_at.desc(), runs.c.id.desc())
    )
    return {row.parent_run_id: row.id for row in connection.execute(query)}


_ONLY_A_CALL = re.compile(r"An error occurred while calling \S+\.(?: Trace:)?$")


def failed_children(
    connection: Connection, above: Collection[int], moment: int | None = None
) -> dict[int, int]:
    """Return how many runs that name each of these as parent failed, or had by a moment.

    A canceled run, such as a stopped query, has not failed. A command that another consists of
    fails with it, once.
    """
    bound = {"runs": list(above), "moment": moment}
    failed = Counter(dict(map(tuple, connection.execute(_failed(moment is not None), bound))))
    if failed:
        inner = dict(map(tuple, connection.execute(_failed_inner(), bound)))
        failed.subtract(inner[run] for run in nested_runs(connection, inner, moment))
    return dict(failed)


@cache
def _failed(past: bool) -> Select[Any]:
    failed = select(run_parents.c.parent_run_id, func.count()).join(
        runs, runs.c.id == run_parents.c.run_id
    )
    failed = failed.where(among_given(run_parents.c.parent_run_id, "runs"), runs.c.state == FAIL)
    failed = failed.where(runs.c.ended_at <= MOMENT) if past else failed
    return failed.group_by(run_parents.c.parent_run_id)


@cache
def _failed_inner() -> Select[Any]:
    """Select the failed runs below these that may be a part of another's command, with parents."""
    return (
        select(run_parents.c.run_id, run_parents.c.parent_run_id)
        .join(runs, runs.c.id == run_parents.c.run_id)
        .join(jobs, jobs.c.id == runs.c.job_id)
        .where(
            among_given(run_parents.c.parent_run_id, "runs"),
            runs.c.state == FAIL,
            IS_NAMED_AS_INNER,
        )
    )


def outcomes(
    connection: Connection, outcome_of: Mapping[int, bool], moment: int | None = None
) -> dict[int, Answer]:
    """The error of each of these runs, and how many of the runs below it failed.

    Of a past moment, what is stated by then.

    A run that failed (true) and gives no reason has that of the first run below it that failed.
    """
    errors, failed = (
        errors_of(connection, outcome_of, moment),
        failed_children(connection, outcome_of, moment),
    )
    silent = [run for run, has_failed in outcome_of.items() if has_failed and run not in errors]
    errors |= {
        run: first_line(message) for run, message in failures(connection, silent, moment).items()
    }
    return {
        run: {"error": errors.get(run), "failedChildren": failed.get(run, 0)} for run in outcome_of
    }


def errors_of(
    connection: Connection, runs: Collection[int], moment: int | None = None
) -> dict[int, str]:
    """The first line of the message of each of these runs that has one."""
    messages = messages_of(connection, runs, moment) if runs else {}
    return {run: first_line(message) for run, message in messages.items()}


def first_line(message: str) -> str:
    r"""The first line of an error that says why.

    Py4J's only says what Python called, the next what Java threw.

    >>> first_line("no such column: x\n  at line 7")
    'no such column: x'
    >>> first_line(
    ...     "Py4JJavaError: An error occurred while calling o602.sql.\n"
    ...     ": java.lang.ArithmeticException: / by zero"
    ... )
    'java.lang.ArithmeticException: / by zero'
    """
    first, *others = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    reason = others[0].removeprefix(":").strip() if others and _ONLY_A_CALL.search(first) else ""
    return reason or first
