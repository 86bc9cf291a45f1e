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
from strandline_spark.jvm.client import JavaObject, Jvm, answer, class_name, known, known_answer
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
        """The folder or file that is read or written."""
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
        """The other folders of one read."""
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
        path = mention.options.get("path") if mention.provider in _SOURCES else None
        return folder_of(path) if path is not None else None


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
    index = answer(relation, "index", lambda relation_: known(relation_.location()))
    if class_name(index).startswith("org.apache.spark.sql.delta."):
        return []  # Delta's own reading of its log
    first = known_answer(relation, "first")
    if known_answer(relation, "paths") == 1 and first is not None:
        return [folder_of(str(first))]
    paths = index.rootPaths()
    return folders_of([str(paths.apply(index).toString()) for index in range(paths.size())])


def _watched(relation: JavaObject, jvm: Jvm) -> str | None:
    shown = known_answer(relation, "options")
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
    roots = [str(paths.apply(index)) for index in range(paths.size())]
    return folders_of(roots)


_PART_FILE = re.compile(r"/part-[^/]*$")  # that Spark has written into a folder
_PARTITIONS = re.compile(r"(?:/[^/]+=[^/]*)+$")
_SEVERAL = 100  # paths of one read that are each reported under their own name


def folders_of(paths: list[str]) -> list[str]:
    """Return the datasets that a read of several paths reads, each under its own name.

    Of very many files the folders that hold them are named.

    >>> folders_of(["file:/a/orders.parquet", "file:/a/people.parquet"])
    ['file:/a/orders.parquet', 'file:/a/people.parquet']
    >>> folders_of(["file:/raw/orders/dt=1", "file:/raw/orders/dt=2", "file:/raw/people/dt=1"])
    ['file:/raw/orders', 'file:/raw/people']
    """
    folders = list(dict.fromkeys(map(folder_of, paths)))
    if len(folders) > _SEVERAL:
        folders = list(dict.fromkeys(_folder(path.rpartition("/")[0]) for path in folders))
    return folders


def folder_of(path: str) -> str:
    """Return the folder that a path is a part of, or the path itself.

    A partition has the name of its folder, and so has a file that Spark has written into one.

    >>> folder_of("file:/events/day=1/hour=2"), folder_of("file:/orders/part-00000-c000.parquet")
    ('file:/events', 'file:/orders')
    >>> folder_of("file:/land/2026-01-05"), folder_of("file:/dt=1")
    ('file:/land/2026-01-05', 'file:/')
    """
    return _folder(_PARTITIONS.sub("", _PART_FILE.sub("", path)))


def _folder(path: str) -> str:
    """Return the path, or the root of a file system whose steps were all taken away."""
    return f"{path}/" if not path or path.endswith(":") else path


FORMAT = Files()
