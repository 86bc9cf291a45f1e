"""The bank's report, once, from whatever lake.bank.balance holds.

CREATE TABLE lake.bank.report AS SELECT.
"""

from pyspark.sql import SparkSession

REPORT = """
CREATE TABLE lake.bank.report USING iceberg AS
SELECT account, balance, CASE WHEN balance < 0 THEN 'owes' ELSE 'owns' END AS standing,
       RANK() OVER (ORDER BY balance DESC) AS place
  FROM lake.bank.balance
"""

if __name__ == "__main__":
    with SparkSession.builder.appName("bank_report").getOrCreate() as spark:
        spark.sql(REPORT)
