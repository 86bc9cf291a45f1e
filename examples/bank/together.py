"""All streams of the bank in one application, for a machine with little memory."""

from concurrent.futures import ThreadPoolExecutor

import balance
import credits
import debits
import ingest
from pyspark.sql import SparkSession

if __name__ == "__main__":
    with SparkSession.builder.appName("bank").getOrCreate() as spark, ThreadPoolExecutor() as pool:
        for _ in pool.map(lambda job: job.run(spark), (ingest, credits, debits, balance)):
            pass
