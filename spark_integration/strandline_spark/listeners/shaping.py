"""A Statement as it is reported.

Providers' datasets in place, noise cut from paths, column lineage as the conf asks.
"""

from __future__ import annotations

from dataclasses import replace

from strandline_spark.conf import Conf
from strandline_spark.listeners.vertex_providers import provided
from strandline_spark.model.job_names import without_path_noise
from strandline_spark.model.statement import Column, Statement


def shaped(statement: Statement, conf: Conf) -> Statement:
    """Return the statement with everything that the conf asks for done to it."""
    branches = tuple(shaped(branch, conf) for branch in statement.branches)
    whole = replace(statement, branches=branches) if branches else statement
    return _columns_as_asked(without_path_noise(provided(whole), conf.remove_path), conf)


def _columns_as_asked(statement: Statement, conf: Conf) -> Statement:
    """Without the columns of a statement that has more than the limit.

    Filters and joins with each column if asked.
    """
    if conf.column_limit is not None and len(statement.columns) > conf.column_limit:
        return replace(statement, columns=(), indirect=())
    if conf.dataset_lineage or not statement.indirect:
        return statement
    columns = tuple(
        Column(column.name, (*column.origins, *statement.indirect)) for column in statement.columns
    )
    return replace(statement, columns=columns, indirect=())
