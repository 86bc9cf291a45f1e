"""What Delta's own commands write."""

from __future__ import annotations

from collections.abc import Mapping

from strandline_spark.formats.writes import Described, InPlace, Like

WRITES: Mapping[str, Described] = {
    "MergeIntoCommand": InPlace("merge", "target"),
    "UpdateCommand": InPlace("update", "target"),
    "DeleteCommand": InPlace("delete", "target"),
    "DeltaDynamicPartitionOverwriteCommand": Like("OverwritePartitionsDynamic"),
    "TruncateDeltaTableCommand": Like("TruncateTable"),
}
