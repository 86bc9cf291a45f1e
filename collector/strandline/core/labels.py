"""Labels of the nodes of an answer, for text, drawings, lists and changes."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from strandline.core.openlineage.names import TableName


def label_of(node: Mapping[str, Any]) -> str:
    """Return catalog.database.table as Spark has it, where it is known, else the node's own name.

    A column and a snapshot follow as `.column` and `@ snapshot`.

    >>> table = {"name": "/lake/a", "namespace": "file", "catalog": "lake", "database": "bank"}
    >>> label_of(table | {"table": "a", "column": "b"})
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


def labels_of(nodes: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Map nodes of one answer to their labels, no two of which are equal.

    Equal labels begin with the namespace; where that is the same too, they are the nodes' ids.

    >>> orders = {"id": "dataset:s3://a:orders", "namespace": "s3://a", "name": "orders"}
    >>> others = {"id": "dataset:s3://b:orders", "namespace": "s3://b", "name": "orders"}
    >>> list(labels_of([orders, others]).values())
    ['s3://a/orders', 's3://b/orders']
    """
    by_id = {node["id"]: node for node in nodes}
    short = {id_: label_of(node) for id_, node in by_id.items()}
    times = Counter(short.values())
    long = {
        id_: label if times[label] == 1 else _with_namespace(by_id[id_], label)
        for id_, label in short.items()
    }
    return told_apart(long)


def _with_namespace(node: Mapping[str, Any], label: str) -> str:
    namespace = str(node["namespace"])
    return (
        f"{namespace.rstrip('/')}/{label.lstrip('/')}"
        if "/" in namespace
        else f"{namespace}:{label}"
    )


def told_apart(labels: Mapping[str, str]) -> dict[str, str]:
    """Map nodes to their labels, and those with equal labels to their ids.

    >>> told_apart({"dataset:a:t": "t", "dataset:b:t": "t", "dataset:a:u": "u"})
    {'dataset:a:t': 'dataset:a:t', 'dataset:b:t': 'dataset:b:t', 'dataset:a:u': 'u'}
    """
    times = Counter(labels.values())
    return {id_: label if times[label] == 1 else id_ for id_, label in labels.items()}
