"""Files and folders, with or without a table of Spark's own catalog over them.

A folder is the dataset; a table over it is a symlink. Files have no snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from strandline_spark.formats.catalog_tables import (
    location_of,
    session_catalog,
    symlink_of,
    table_name,
)
from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.class_names import HADOOP_RELATION, V2_FILE_TABLES
from strandline_spark.jvm.client import JavaObject, Jvm, class_name, kept, once
from strandline_spark.model.statement import Dataset

_SOURCES = {
    "files",
    "file",
    "parquet",
    "orc",
    "csv",
    "json",
    "text",
    "avro",
    "xml",
    "binaryfile",
    "libsvm",
    "image",
}


_ASKED = {
    HADOOP_RELATION: {
        "options": "options.toString",
        "indexClass": "location.getClass.getName",
        "paths": "location.rootPaths.size",
        "first": "location.rootPaths.head.toString",
    }
}


class Files(Format):
    """HadoopFsRelation and what writes like one. Asked last: most formats lie in files."""

    name = "files"
    rank = 90
    asked = _ASKED

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        location = self._location(mention, jvm)
        if location is None:
            return None
        namespace, name = jvm.path(location)
        table = mention.catalog_table
        if table is None:
            return Dataset(namespace, name, self.name, mention.schema)
        symlinks = (symlink_of(table, jvm),)
        return Dataset(
            namespace,
            name,
            self.name,
            mention.schema,
            session_catalog(jvm),
            table_name(table),
            symlinks,
        )

    def others_of(self, mention: Mention, jvm: Jvm) -> Sequence[Dataset]:
        if mention.catalog_table is not None or mention.offsets not in (None, (None, None)):
            return ()
        places = (jvm.path(folder) for folder in _roots(mention, jvm)[1:])
        return [Dataset(namespace, name, self.name, mention.schema) for namespace, name in places]

    def _location(self, mention: Mention, jvm: Jvm) -> str | None:
        if mention.relation is not None and mention.offsets in (None, (None, None)):
            if mention.catalog_table is not None:
                return _of_table(mention)
            return next(iter(_roots(mention, jvm)), None)
        if mention.catalog_table is not None:
            return _of_table(mention)
        if mention.table is not None:
            return next(iter(_roots(mention, jvm)), None)
        return mention.options.get("path") if mention.provider in _SOURCES else None


def _of_table(mention: Mention) -> str | None:
    return location_of(mention.catalog_table) or mention.options.get("path")


def _roots(mention: Mention, jvm: Jvm) -> list[str]:
    """The folders of what is no table of a catalog."""
    if mention.relation is not None:
        return _roots_of(mention.relation, jvm)
    return _roots_of_table(mention.table) if mention.table is not None else []


def _roots_of(relation: JavaObject, jvm: Jvm) -> list[str]:
    """The folders of a relation.

    Of a stream's micro-batch, which is given single files, the folder that is watched.
    """
    if not class_name(relation).endswith("HadoopFsRelation"):
        return []
    watched = _watched(relation, jvm)
    if watched:
        return [watched]
    index = once(relation, "index", lambda one: one.location())
    if class_name(index).startswith("org.apache.spark.sql.delta."):
        return []  # Delta's own reading of its log
    if kept(relation, "paths") == 1 and kept(relation, "first") is not None:
        return [str(kept(relation, "first"))]
    paths = index.rootPaths()
    return folders_of([str(paths.apply(index).toString()) for index in range(paths.size())])


def _watched(relation: JavaObject, jvm: Jvm) -> str | None:
    shown = kept(relation, "options")
    if shown is not None and "basepath" not in shown.lower():
        return None
    return jvm.options(relation.options()).get("basepath")


def _roots_of_table(table: JavaObject) -> list[str]:
    """Spark's v2 tables of files, which an empty spark.sql.sources.useV1SourceList switches on."""
    name = class_name(table)
    if (
        not name.startswith(V2_FILE_TABLES)
        or name.rpartition(".")[2].removesuffix("Table").lower() not in _SOURCES
    ):
        return []
    paths = table.paths()
    given = [str(paths.apply(index)) for index in range(paths.size())]
    return folders_of(given) if len(given) > 1 else given


_PART = re.compile(r"[^/]+=[^/]*|[\d_-]+|[^/]+\.\w+")  # a partition, a date, a file
_PARTITIONS = re.compile(r"(?:/[^/]+=[^/]*)+$")
_PLACE = re.compile(r"(?P<root>(?:[A-Za-z][\w+.\-]*:)?(?://[^/]*)?)(?P<path>.*)", re.DOTALL)


def folders_of(paths: list[str]) -> list[str]:
    """What a read of several paths reads.

    Parts of one folder are that folder, folders are each their own.

    >>> folders_of(["file:/a/b/c=1", "file:/a/b/c=2"]), folders_of(["file:/a/orders", "file:/a/people"])
    (['file:/a/b'], ['file:/a/orders', 'file:/a/people'])
    >>> folders_of(["file:/raw/orders/dt=1", "file:/raw/people/dt=1"])
    ['file:/raw/orders', 'file:/raw/people']
    >>> folders_of(["s3a://one/x.csv", "s3a://two/y.csv", "hdfs://h/y.csv"])
    ['s3a://one/x.csv', 's3a://two/y.csv', 'hdfs://h/y.csv']
    """
    whole: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        whole.setdefault(_without_parts(path), []).append(path)
    folders = (common_folder(parts) or parts[0] for parts in whole.values())
    return list(dict.fromkeys(_folder(_PARTITIONS.sub("", folder)) for folder in folders))


def _folder(path: str) -> str:
    """The path; of a file system whose steps were all taken away, its root."""
    return f"{path}/" if not path or path.endswith(":") else path


def _without_parts(path: str) -> str:
    """The folder that a path may be a part of; file system and bucket are none."""
    found = _PLACE.fullmatch(path)
    root, steps = (found["root"], found["path"].split("/")) if found else ("", path.split("/"))
    while len(steps) > 1 and _PART.fullmatch(steps[-1]):
        steps.pop()
    return root + ("/".join(steps) or "/")


def common_folder(paths: list[str]) -> str | None:
    """One path for what a read was given: the folder that holds all of it.

    >>> common_folder(["file:/a/b/c=1", "file:/a/b/c=2"])
    'file:/a/b'
    """
    if len(paths) < 2:
        return paths[0] if paths else None
    parts = [path.split("/") for path in paths]
    shared = []
    for first, *others in zip(*parts, strict=False):
        if any(other != first for other in others):
            break
        shared.append(first)
    return _folder("/".join(shared)) if shared else None


FORMAT = Files()
