"""The schema of an output as `Field`s.

In the spelling of Spark SQL ("bigint", not "long").
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from strandline_spark.model.statement import Field
from strandline_spark.plans.tree import Node

_SQL_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def type_name(data_type: Any) -> str:
    """A type as Spark SQL writes it: "struct<a:bigint>", "array<string>", "decimal(10,2)"."""
    if isinstance(data_type, str):
        return _SQL_NAMES.get(data_type, data_type)
    kind = data_type.get("type")
    if kind == "struct":
        return (
            "struct<"
            + ",".join(f"{f['name']}:{type_name(f['type'])}" for f in data_type["fields"])
            + ">"
        )
    if kind == "array":
        return f"array<{type_name(data_type['elementType'])}>"
    if kind == "map":
        return f"map<{type_name(data_type['keyType'])},{type_name(data_type['valueType'])}>"
    return type_name(data_type["sqlType"]) if "sqlType" in data_type else str(kind)


def field_of(name: str, data_type: Any) -> Field:
    """One column; a struct, or an array of structs, shows the fields inside."""
    return Field(name, type_name(data_type), _inner(data_type))


def _inner(data_type: Any) -> tuple[Field, ...]:
    if not isinstance(data_type, dict):
        return ()
    if data_type.get("type") == "struct":
        return tuple(field_of(f["name"], f["type"]) for f in data_type["fields"])
    return _inner(data_type["elementType"]) if data_type.get("type") == "array" else ()


def schema_of(output: Sequence[Node]) -> tuple[Field, ...]:
    """The columns of a leaf's `output`; metadata columns (`_file`, `_pos`) belong to no schema."""
    return tuple(
        field_of(attribute.fields["name"], attribute.fields["dataType"])
        for attribute in output
        if not is_metadata(attribute)
    )


def fields_of(struct_type: Any) -> tuple[Field, ...]:
    """The columns of a StructType of the JVM."""
    return fields_in(struct_type.json())


def fields_in(text: str) -> tuple[Field, ...]:
    """The columns of a StructType's JSON."""
    return tuple(field_of(column["name"], column["type"]) for column in json.loads(text)["fields"])


def is_metadata(attribute: Node) -> bool:
    """Return whether an attribute is a column that a source adds and a table does not have.

    Spark marks such an attribute. A table's own column of the same name has no mark.
    """
    return attribute.fields.get("metadata") is True
