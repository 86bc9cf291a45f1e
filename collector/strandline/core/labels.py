"""Labels of the nodes of an answer: one rule for pages of text, drawings, lists and changes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from strandline.core.openlineage.names import TableName


def label_of(node: Mapping[str, Any]) -> str:
    """Return catalog.database.table as Spark has it, where it is known, else the node's own name.

    Then `.column` and `@ snapshot`.

    >>> place = {"catalog": "lake", "database": "bank", "table": "a"}
    >>> label_of({"name": "/lake/bank/a", "namespace": "file", "column": "b"} | place)
    'lake.bank.a.b'
    >>> label_of({"name": "load", "snapshotId": None, "approximateSnapshotId": "71"})
    'load @ 71 (approximate)'
    """
    name = str(node["name"])
    if node.get("database"):
        place = TableName(node["catalog"], node["database"], node["table"])
        name = place.called(str(node["namespace"]), name)
    if node.get("column"):
        name = f"{name}.{node['column']}"
    if "snapshotId" not in node:
        return name
    return f"{name} @ {node['snapshotId'] or node['approximateSnapshotId'] + ' (approximate)'}"


def told_apart(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of nodes by their ids; the id itself of those that are called the same.

    >>> told_apart({"dataset:a:t": "t", "dataset:b:t": "t", "dataset:a:u": "u"})
    {'dataset:a:t': 'dataset:a:t', 'dataset:b:t': 'dataset:b:t', 'dataset:a:u': 'u'}
    """
    times = Counter(labels.values())
    return {id_: label if times[label] == 1 else id_ for id_, label in labels.items()}
