"""One application of a recording, as `python -m recordings.application NAME NUMBER FOLDER`.

Plain PySpark.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from recordings.index import RECORDINGS


def main(name: str, number: str, folder: str) -> None:
    """Run it; a failure ends the process as it ends any program."""
    application = RECORDINGS[name].applications[int(number)]
    spark = SparkSession.builder.appName(application.name).getOrCreate()
    application.program(spark, Path(folder))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
