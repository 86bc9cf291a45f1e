"""Assignments of table formats' own commands reach the target's columns, however they are spelt."""

from __future__ import annotations

from strandline_spark.columns.assignments import Assigned, assign, assigned
from strandline_spark.columns.expression import Ref, column
from strandline_spark.columns.resolver import Resolver
from strandline_spark.columns.scopes import Scope, Seen
from strandline_spark.extraction.lineage_memory import Memory
from strandline_spark.plans.tree import Node

PEOPLE = "file", "/people"
TARGET = Scope(((1, "name"), (2, "address"), (3, "age")))


def attribute(name: str, expr_id: int) -> Node:
    return Node("AttributeReference", {"name": name, "exprId": expr_id}, [])


def columns_set(assignments: list[tuple[Node, str]], *, grows: bool = False) -> list[str]:
    """Return the columns that are set to columns of the table `people`."""
    sources = [name for _, name in assignments]
    values = {10 + at: column(Ref(PEOPLE, name, "people")) for at, name in enumerate(sources)}
    inner = Seen(
        Resolver({}, Memory().recall()),
        [TARGET, Scope(tuple((10 + at, name) for at, name in enumerate(sources)), values)],
        {},
    )
    nodes = [
        Node("Assignment", {}, [target, attribute(name, 10 + at)])
        for at, (target, name) in enumerate(assignments)
    ]
    by_name: Assigned = {}
    assign(nodes, by_name, inner)
    scope = assigned(by_name, TARGET, inner, grows=grows)
    return [
        f"{name} <- {ref.name}"
        for name, value in scope.column_values()
        for term in value
        for ref, _ in term.kinds
    ]


def test_assignment_in_another_case_sets_the_targets_column() -> None:
    names = [(attribute("NAME", 1), "called"), (attribute("name", 1), "alias")]

    assert columns_set(names) == ["name <- called", "name <- alias"]
    assert columns_set(names, grows=True) == ["name <- called", "name <- alias"]


def test_assignment_of_a_field_sets_its_column() -> None:
    city = Node("GetStructField", {"name": "city"}, [attribute("address", 2)])

    assert columns_set([(city, "town"), (attribute("age", 3), "years")]) == [
        "address <- town",
        "age <- years",
    ]


def test_only_a_command_that_evolves_its_table_adds_columns() -> None:
    new = [(attribute("Nick", 7), "called"), (attribute("age", 3), "years")]

    assert columns_set(new) == ["age <- years"]
    assert columns_set(new, grows=True) == ["age <- years", "Nick <- called"]
