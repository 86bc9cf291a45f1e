"""Folders that become a table's, or a partition's, without a query that reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from strandline_spark.formats.catalog_tables import location_of
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import ReadBy
from strandline_spark.jvm.class_names import FILE_SYSTEM, HADOOP_PATH
from strandline_spark.jvm.client import JavaObject, Jvm, optional

_PATTERN = re.compile(r"/[^/]*[*?\[{].*")  # of a path that means several files


def _loaded(plan: JavaObject, jvm: Jvm) -> list[Mention]:
    """LOAD DATA moves files into a table, or copies those of the driver's own disk."""
    path = jvm.new(HADOOP_PATH, _PATTERN.sub("", str(plan.path())))
    if plan.isLocal():
        system = jvm.static(FILE_SYSTEM, "getLocal")(jvm.hadoop_configuration)
    else:
        system = path.getFileSystem(jvm.hadoop_configuration)
    return [_folder(str(system.makeQualified(path).toString()))]


def _partitions(plan: JavaObject, jvm: Jvm) -> list[Mention]:
    """ADD PARTITION with LOCATION: the table's rows lie in that folder too."""
    places = [optional(spec._2()) for spec in jvm.sequence(plan.partitionSpecsAndLocs())]
    outside = [str(place) for place in places if place is not None]
    return _outside(plan, outside, jvm)


def _moved_partition(plan: JavaObject, jvm: Jvm) -> list[Mention]:
    """SET LOCATION of one partition; that of a table gives its name to another folder."""
    if optional(plan.partitionSpec()) is None:
        return []
    return _outside(plan, [str(plan.location())], jvm)


def _outside(plan: JavaObject, places: list[str], jvm: Jvm) -> list[Mention]:
    """Return the folders that do not lie in the table's own."""
    table = jvm.session.sessionState().catalog().getTableMetadata(plan.tableName())
    own = jvm.path(str(location_of(table)))
    return [
        _folder(place)
        for place in places
        if jvm.path(place) != own
        and not (jvm.path(place)[0] == own[0] and jvm.path(place)[1].startswith(own[1] + "/"))
    ]


def _folder(path: str) -> Mention:
    return Mention(provider="files", options={"path": path})


BROUGHT_IN: Mapping[str, ReadBy] = {
    "LoadDataCommand": _loaded,
    "AlterTableAddPartitionCommand": _partitions,
    "AlterTableSetLocationCommand": _moved_partition,
}
