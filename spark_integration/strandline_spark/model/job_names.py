"""Names of jobs: the application's, then the output's.

With nothing of the plan in it, so that they stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from strandline_spark.model.statement import Dataset, Statement

_DEFINITION = re.compile(
    r"(Create|Replace|Drop|Truncate|Rename|Alter)\w*(Table|View)\w*|(Add|Alter|Drop|Rename|Replace)Columns?"
)


def output_name(statements: Sequence[Statement]) -> str | None:
    """Return the whole name of the first output; None when nothing is written.

    What is renamed has its old name, which it keeps if that fails.

    >>> output_name([])
    """
    for statement in statements:
        for output in statement.outputs:
            name = whole_name(output.before or output.dataset)
            return f"{name}.{output.operation}" if _only_defines(statement) else name
    return None


def unread_output_name(statements: Sequence[Statement]) -> str | None:
    """Return the name of a job whose output could not be read: its kind of statement.

    A target that was not found has its name all the same. None for others.

    >>> unread = ("an output of MergeIntoTable: LookupError: gone",)
    >>> unread_output_name([Statement("MergeIntoTable", unread=unread)])
    'unread.MergeIntoTable'
    >>> unread_output_name([Statement("InsertIntoStatement", absent="lake.bank.nowhere")])
    'lake.bank.nowhere'
    """
    for statement in statements:
        if statement.absent is not None:
            return statement.absent.removeprefix("spark_catalog.")
        if statement.output_unread:
            return f"unread.{statement.kind}"
    return None


def _only_defines(statement: Statement) -> bool:
    """CREATE TABLE and its kind bring no data.

    They are another job than the one that fills the table.
    """
    return (
        bool(_DEFINITION.fullmatch(statement.kind))
        and "AsSelect" not in statement.kind
        and not statement.inputs
    )


def whole_name(dataset: Dataset) -> str:
    """Return a dataset's whole name as Spark says it, so that two outputs never share a job.

    A table's has its catalog, unless that is the session's. A path's has its file system, and what
    lies elsewhere (a topic, a database) its server.

    >>> whole_name(Dataset("file", "/data/silver/orders", "files"))
    '/data/silver/orders'
    >>> whole_name(Dataset("s3://lake", "silver/orders", "files"))
    's3://lake/silver/orders'
    >>> whole_name(Dataset("file", "/w/bank/credits", "iceberg", table="lake.bank.credits"))
    'lake.bank.credits'
    >>> whole_name(Dataset("file", "/w/orders", "files", table="spark_catalog.default.orders"))
    'default.orders'
    """
    if dataset.table:
        return dataset.table.removeprefix("spark_catalog.")
    if dataset.namespace == "file":
        return dataset.name
    separator = "/" if "://" in dataset.namespace else ":"
    return f"{dataset.namespace}{separator}{dataset.name.lstrip('/')}"


def job_name(template: str, app: str, output: str) -> str:
    """Fill in the conf's template; braces that name nothing stay as they are.

    >>> job_name("{app}.{output}", "bank", "bank.credits")
    'bank.bank.credits'
    """
    filled = {"{app}": app, "{output}": output}
    return re.sub(r"\{(?:app|output)\}", lambda match: filled[match[0]], template)


def without_path_noise(statement: Statement, pattern: str | None) -> Statement:
    """Return the statement with the pattern's group `remove` cut out of dataset names."""
    if pattern is None:
        return statement
    return replace(
        statement,
        inputs=tuple(_cut(dataset, pattern) for dataset in statement.inputs),
        outputs=tuple(replace(o, dataset=_cut(o.dataset, pattern)) for o in statement.outputs),
    )


def _cut(dataset: Dataset, pattern: str) -> Dataset:
    match = re.search(pattern, dataset.name)
    if match is None or "remove" not in match.re.groupindex or match.start("remove") < 0:
        return dataset
    name = dataset.name[: match.start("remove")] + dataset.name[match.end("remove") :]
    return replace(dataset, name=name) if name else dataset
