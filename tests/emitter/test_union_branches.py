"""The branches of a UNION, each of which keeps its own expression."""

from __future__ import annotations

from strandline_spark.columns.expression import (
    MOST_BRANCHES,
    Ref,
    aligned,
    alternatives,
    built,
    column,
    written,
)


def test_union_of_twenty_branches_keeps_twenty_expressions() -> None:
    branches = [column(Ref(("file", f"/s{number}"), "c", f"s{number}")) for number in range(20)]
    values = alternatives([(built([*value, f" + {n}"], {}),) for n, value in enumerate(branches)])

    assert [written(term) for term in values] == [f"c + {number}" for number in range(20)]
    assert [len(row) for row in aligned([values, values])] == [2] * 20


def test_union_past_its_bound_keeps_the_columns_of_all_branches() -> None:
    branches = [
        column(Ref(("file", f"/s{number}"), "c", f"s{number}"))
        for number in range(MOST_BRANCHES + 5)
    ]

    values = alternatives(branches)

    assert len(values) == MOST_BRANCHES
    assert len({ref for term in values for ref, _ in term.kinds}) == MOST_BRANCHES + 5
