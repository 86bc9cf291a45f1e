"""A busy driver with two threads: each names its next statement, runs it, and names the next.

`names.py FOLDER FORMAT`; a statement's name is that of the folder which it writes. Each thread has a session of its own.
"""

from __future__ import annotations

import sys
import threading

from pyspark.sql import SparkSession

STATEMENTS = 8


def busy(spark: SparkSession, folder: str, thread: str) -> None:
    rows = spark.range(1)
    for number in range(STATEMENTS):
        spark.conf.set("spark.strandline.job.name", f"{thread}{number}")
        rows.write.parquet(f"{folder}/{thread}{number}")


def compute(over: threading.Event) -> None:
    """Keeps Python's interpreter busy, as a driver that works on its data does."""
    while not over.is_set():
        sum(range(10_000))


def main(folder: str, kind: str) -> None:
    spark = SparkSession.builder.appName("names").getOrCreate()
    over = threading.Event()
    threading.Thread(target=compute, args=(over,)).start()
    threads = [threading.Thread(target=busy, args=(spark.newSession(), folder, name)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spark.range(1).write.parquet(f"{folder}/last")
    over.set()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
