"""The Spark session of a command.

The conf of spark-submit wins; by default Spark runs on this machine's cores.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from strandline.errors import SettingsError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_session(options: Namespace) -> Iterator[SparkSession]:
    """Yield a session with the conf of the command line, and stop it afterwards.

    A session that exists already is used, and stays open.

    Raises SettingsError where Spark is missing, or an entry of the conf is none.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise SettingsError(["pyspark is not installed: pip install 'strandline[spark]'"]) from None
    os.environ.setdefault(
        "PYSPARK_PYTHON", sys.executable
    )  # workers need what this interpreter has
    held = SparkSession.getActiveSession()
    if held is not None:
        yield held
        return
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master(options.master).appName("strandline")
    for key, value in {**quiet, **_entries(options.conf)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _entries(conf: Sequence[str]) -> dict[str, str]:
    entries = {}
    for entry in conf:
        key, equals, value = entry.partition("=")
        if not (key and equals):
            raise SettingsError([f"--conf {entry}: is not KEY=VALUE"])
        entries[key] = value
    return entries
