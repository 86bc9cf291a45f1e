"""The newest version of a Delta table is found with few lookups in any log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strandline_spark.formats.delta.datasets import _newest_version, newest_from
from strandline_spark.jvm.client import Jvm


class Asked:
    """The existence of a version, and the number of checks."""

    def __init__(self, newest: int) -> None:
        self.newest = newest
        self.times = 0

    def __call__(self, version: int) -> bool:
        self.times += 1
        return version <= self.newest


@pytest.mark.parametrize(
    ("known", "newest", "most"), [(-1, -1, 1), (-1, 9_999, 28), (9_990, 9_999, 8), (41, 41, 1)]
)
def test_long_log_needs_few_lookups(known: int, newest: int, most: int) -> None:
    exists = Asked(newest)

    assert newest_from(known, exists) == newest
    assert exists.times <= most


def commit(table: Path, *versions: int) -> None:
    """Files of a log."""
    (table / "_delta_log").mkdir(parents=True, exist_ok=True)
    for version in versions:
        (table / "_delta_log" / f"{version:020}.json").write_text("{}")


@pytest.mark.spark
def test_log_is_followed_from_its_checkpoint_or_last_known_version(
    lake: Any, tmp_path: Path
) -> None:
    jvm = Jvm(lake._jvm, lake._jsparkSession)
    table = tmp_path / "table"

    assert _newest_version(str(table), jvm) is None
    commit(table, *range(10, 24))  # those before the checkpoint have been cleaned away
    (table / "_delta_log" / "_last_checkpoint").write_text(json.dumps({"version": 20, "size": 3}))
    assert _newest_version(str(table), jvm) == 23
    commit(table, 24)
    assert _newest_version(str(table), jvm) == 24
    for file in (table / "_delta_log").iterdir():
        file.unlink()
    commit(table, 0, 1)  # dropped, and made anew
    assert _newest_version(str(table), jvm) == 1
