"""What the probe is asked of the objects that plans are made of, by their classes.

A question is a path of methods; see `probe.java`. Of nodes that plans are mostly made of, only some
fields are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from strandline_spark.jvm.class_names import (
    EXPRESSIONS,
    INSIDE,
    LOGICAL,
    QUERY_EXECUTION,
    SCANS,
    SOURCES,
    WITHIN,
)
from strandline_spark.jvm.probe import Probe, probe_of, questions_as_lines

OF_TABLES: dict[str, Mapping[str, str]] = {}
"""What table formats ask of their tables and relations; their registry fills it."""

_WRITE = "table isByName"
_WANTED = {
    f"{EXPRESSIONS}AttributeReference": "name dataType metadata exprId",
    f"{EXPRESSIONS}Alias": "name exprId",
    f"{EXPRESSIONS}Cast": "dataType evalMode",
    f"{EXPRESSIONS}Literal": "dataType",
    f"{EXPRESSIONS}aggregate.AggregateExpression": "isDistinct",
    f"{EXPRESSIONS}SortOrder": "direction nullOrdering",
    f"{EXPRESSIONS}CaseWhen": "-",  # its branches are its children
    f"{LOGICAL}Join": "joinType condition",
    f"{LOGICAL}View": "isTempView",
    # Commands: what else they hold nobody looks at, and some hold their query twice.
    f"{LOGICAL}AppendData": _WRITE,
    f"{LOGICAL}OverwriteByExpression": _WRITE,
    f"{LOGICAL}OverwritePartitionsDynamic": _WRITE,
    f"{SOURCES}InsertIntoHadoopFsRelationCommand": "outputColumnNames mode ifPartitionNotExists",
}
_QUESTIONS: Mapping[str, Mapping[str, str]] = {
    QUERY_EXECUTION: {
        "number": "id",
        "session": "sparkSession.sessionUUID",
        "plan": "analyzed",
        "sql": "analyzed.origin.sqlText",
        "inner sql": "analyzed.children.headOption.origin.sqlText",
    },
    f"{SOURCES}LogicalRelation": {
        "hasTable": "catalogTable.identifier.table",
        "known": ">relation",
    },
    f"{SOURCES}v2.DataSourceV2Relation": {
        "catalogName": "catalog.name",
        "namespace": "identifier.namespace",
        "tableName": "identifier.name",
        "withoutOptions": "options.isEmpty",
        "known": ">table",
    },
    f"{SOURCES}InsertIntoHadoopFsRelationCommand": {
        "pathText": "outputPath.toString",
        "schemaText": "query.schema.json",
        "hasTable": "catalogTable.identifier.table",
    },
}


@lru_cache(maxsize=2)
def plan_probe(gateway_client: Any) -> Probe:
    """Return a JVM's probe, which has learnt all of it."""
    probe = probe_of(gateway_client)
    probe.learn(_lines())
    return probe


def _lines() -> str:
    physical = {name: dict[str, str]() for name in (*WITHIN, *SCANS, *INSIDE)}
    for question, paths in (("written", WITHIN), ("scan", SCANS), ("inside", INSIDE)):
        for name, path in paths.items():
            physical[name][question] = path
    wanted = (f"{name}\t{fields}" for name, fields in _WANTED.items())
    return "\n".join([questions_as_lines({**_QUESTIONS, **physical, **OF_TABLES}), *wanted])
