"""Files and folders, with or without a table of Spark's own catalog over them.

A folder is the dataset; a table over it is a symlink. Files have no snapshots.
"""

from __future__ import annotations

from strandline_spark.formats import Format
from strandline_spark.formats.catalog_tables import catalog_of, location_of, symlink_of, table_name
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm import JavaObject, Jvm
from strandline_spark.statement import Dataset

_V2_FILE_TABLES = "org.apache.spark.sql.execution.datasources.v2."
PROVIDERS = {"parquet", "orc", "csv", "json", "text", "avro", "xml", "binaryfile", "libsvm", "image"}


class Files(Format):
    """HadoopFsRelation and what writes like one."""

    name = "files"
    rank = 90

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        location = self._location(mention)
        if location is None:
            return None
        namespace, name = jvm.path(location)
        table = mention.catalog_table
        if table is None:
            return Dataset(namespace, name, self.name, mention.schema)
        symlinks = (symlink_of(table, jvm),)
        return Dataset(namespace, name, self.name, mention.schema, catalog_of(table, jvm), table_name(table), symlinks)

    def _location(self, mention: Mention) -> str | None:
        if mention.catalog_table is not None:
            return location_of(mention.catalog_table)
        if mention.relation is not None:
            return _root_of(mention.relation)
        if mention.table is not None:
            return _root_of_table(mention.table)
        return mention.options.get("path") if mention.provider is not None else None


def _root_of(relation: JavaObject) -> str | None:
    if not str(relation.getClass().getName()).endswith("HadoopFsRelation"):
        return None
    paths = relation.location().rootPaths()
    return common_folder([str(paths.apply(index).toString()) for index in range(paths.size())])


def _root_of_table(table: JavaObject) -> str | None:
    """Spark's v2 tables of files, which spark.sql.sources.useV1SourceList can switch on."""
    name = str(table.getClass().getName())
    if not (name.startswith(_V2_FILE_TABLES) and name.endswith("Table")) or not hasattr(table, "paths"):
        return None
    paths = table.paths()
    return common_folder([str(paths.apply(index)) for index in range(paths.size())]) if paths.size() else None


def common_folder(paths: list[str]) -> str | None:
    """One path for what a read was given: the folder that holds all of it.

    >>> common_folder(["file:/a/b/c=1", "file:/a/b/c=2"])
    'file:/a/b'
    """
    if len(paths) < 2:
        return paths[0] if paths else None
    parts = [path.split("/") for path in paths]
    shared = [first for first, *others in zip(*parts, strict=False) if all(other == first for other in others)]
    return "/".join(shared) or None


FORMAT = Files()
