"""All streams of the bank in one application, for a machine with little memory."""

import balance
import credits
import debits
import ingest
from pace import ROUNDS, ROWS, finish
from pyspark.sql import SparkSession

if __name__ == "__main__":
    with SparkSession.builder.appName("bank").getOrCreate() as spark:
        queries = [job.start(spark) for job in (ingest, credits, debits, balance)]
        for query, rows in zip(queries, (ROUNDS * ROWS,) * 3 + (2 * ROUNDS * ROWS,), strict=True):
            finish(query, rows)
