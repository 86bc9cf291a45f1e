"""A day of a small lakehouse as its producers tell of it.

Events written by us, in the habits of those who send them.

Airflow over dbt and over Spark's stock listener, Flink, our own emitter, hand-made job and dataset
events; with what is odd about each, and with records that are no events.
"""

from collections.abc import Iterator
from typing import Any

from worlds.builders import (
    QUERY,
    Json,
    at,
    batch,
    dataset,
    encode,
    event,
    job_event,
    parent,
    run_id,
    snapshot,
    symlink,
)

STREAMING = {"jobType": {"processingType": "STREAMING", "integration": "SPARK", "jobType": "JOB"}}
BATCH = {"jobType": {"processingType": "BATCH", "integration": "SPARK", "jobType": "SQL_JOB"}}
GONE = {"_producer": "p", "_schemaURL": "s", "_deleted": True}
ICEBERG = {"name": "lake", "framework": "iceberg", "type": "hive", "warehouseUri": "s3://lake"}


def schema(*columns: str) -> Json:
    """A schema facet."""
    return {"fields": [{"name": column, "type": "bigint"} for column in columns]}


def columns(source: str, *names: str) -> Json:
    """A columnLineage facet.

    Each column from the one of the same name, all filtered by the first.
    """
    how = [{"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}]
    filter_ = [{"type": "INDIRECT", "subtype": "FILTER"}]
    one = {"namespace": "hive://lake", "name": source}
    return {
        "fields": {
            name: {"inputFields": [{**one, "field": name, "transformations": how}]}
            for name in names
        },
        "dataset": [{**one, "field": names[0], "transformations": filter_}],
    }


def airflow() -> Iterator[Json]:
    """A DAG run with two tasks, silent for hours.

    The second fails, and says COMPLETE afterwards.
    """
    nominal = {"nominalTime": {"nominalStartTime": at(0), "nominalEndTime": at(86_400)}}
    dag = (100, "dag")
    yield event(
        "START",
        100,
        "dag",
        0,
        facets=nominal,
        job_facets={"documentation": {"description": "nightly"}},
    )
    for number, task in enumerate(("load", "report")):
        run = 101 + number
        facets = parent(*dag, root=dag) | {
            "airflow": {"task": {"task_id": task}, "taskInstance": {"try_number": 1}}
        }
        owners = {"ownership": {"owners": [{"name": "team", "type": "MAINTAINER"}]}}
        yield event("START", run, f"dag.{task}", 10 * number, facets=facets, job_facets=owners)
        failed = (
            {"errorMessage": {"message": "exit 1", "programmingLanguage": "python"}}
            if number
            else {}
        )
        yield event(
            "FAIL" if number else "COMPLETE", run, f"dag.{task}", 20_000, facets=facets | failed
        )
        yield event("COMPLETE", run, f"dag.{task}", 20_000, facets=parent(*dag))
    yield event("COMPLETE", 100, "dag", 20_001)


def dbt() -> Iterator[Json]:
    """Dbt under Airflow's first task: models with SQL, columns, tests; a run id in capitals."""
    for number, (source, target) in enumerate(
        (("raw.orders", "stage.orders"), ("stage.orders", "mart.orders"))
    ):
        run, job = 110 + number, f"dbt.model.{target}"
        facets = parent(101, "dag.load", root=(100, "dag")) | {"dbt_version": {"version": "1.9"}}
        sql = {"sql": {"query": f"create table {target} as select * from {source}"}}
        made = dataset(
            target, schema=schema("id", "day"), columnLineage=columns(source, "id", "day")
        )
        read = dataset(
            source, schema=schema("id", "day"), dataSource={"name": "hive", "uri": "hive://lake"}
        )
        yield event("START", run, job, 100 + number, [read], [made], facets, sql)
        rows = {"outputStatistics": {"rowCount": 7, "size": 700}}
        ended = event(
            "COMPLETE", run_id(run).upper(), job, 110 + number, [read], [made], facets, sql
        )
        yield ended | {"outputs": [made | {"outputFacets": rows}]}
    asserted = {
        "dataQualityAssertions": {
            "assertions": [{"assertion": "not_null", "success": True, "column": "id"}]
        }
    }
    yield event("COMPLETE", 112, "dbt.test", 130, [dataset("mart.orders", own=asserted)])


def spark() -> Iterator[Json]:
    """The stock listener: an application, a statement (Iceberg's ids as doubles), Delta's own log, a CREATE TABLE AS."""
    app = parent(120, "app", root=(102, "dag.report"))
    yield event(
        "START",
        120,
        "app",
        200,
        facets=parent(102, "dag.report", root=(100, "dag")),
        job_facets=BATCH,
    )
    yield event(
        "RUNNING",
        120,
        "app",
        201,
        facets={"spark_properties": {"properties": {"spark.master": "yarn"}}},
    )
    path = dataset(
        "/lake/mart.db/orders", "s3://lake", symlinks=symlink("mart.orders"), catalog=ICEBERG
    )
    scan = path | {"inputFacets": {"icebergScanReport": {"snapshotId": 4.3581092698981914e18}}}
    other = dataset(
        "/lake/mart.db/totals",
        "s3://lake",
        symlinks=symlink("mart.totals"),
        version={"datasetVersion": "5"},
    )
    yield event("START", 121, "app.insert", 210, [path], [other], app, BATCH)
    yield event("RUNNING", 121, "app.insert", 211, facets=app, job_facets=BATCH)
    yield event("COMPLETE", 121, "app.insert_into_totals", 212, [scan], [other], app, BATCH)
    log = dataset("/lake/delta/_delta_log/00000000000000000007.json", "s3://lake")
    yield event("START", 122, "app.scan_json_delta_log_7", 213, [log], facets=app, job_facets=BATCH)
    yield event(
        "COMPLETE", 122, "app.scan_json_delta_log_7", 214, [log], facets=app, job_facets=BATCH
    )
    made = dataset(
        "mart.copy", lifecycleStateChange={"lifecycleStateChange": "CREATE"}, schema=schema("id")
    )
    yield event("START", 123, "app.ctas", 215, [path], [made], app, BATCH)
    yield event("FAIL", 123, "app.ctas", 216, [path], [made], app, BATCH)
    yield event("COMPLETE", 123, "app.ctas", 216, [path], [made], app, BATCH)
    yield event("COMPLETE", 120, "app", 220)


def spark_streams() -> Iterator[Json]:
    """The stock listener's micro-batches: a run each.

    One is done again under another application after a kill.
    """
    topic = dataset("payments", "kafka://broker:9092")
    files = dataset("/landing/in/part-1.json", "file")
    for number, (app, done) in enumerate(((130, 0), (130, 1), (130, 2), (131, 2))):
        run, facets = 140 + number, parent(app, "stream_app")
        said = {
            "spark_jobDetails": {
                "jobDescription": f"q<br/>id = {QUERY}<br/>runId = x<br/>batch = {done}"
            }
        }
        behind = {
            "spark_properties": {
                "properties": {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": done - 1}
            }
        }
        sink = dataset("mart.payments", version={"datasetVersion": str(done)}, schema=schema("id"))
        yield event(
            "START",
            run,
            "stream_app.batch",
            300 + 10 * number,
            [topic, files],
            [sink],
            facets,
            STREAMING,
        )
        yield event(
            "RUNNING",
            run,
            "stream_app.batch",
            301 + 10 * number,
            facets=facets | said,
            job_facets=STREAMING,
        )
        yield event(
            "RUNNING",
            run,
            "stream_app.batch",
            301 + 10 * number,
            facets=facets | behind,
            job_facets=STREAMING,
        )
        if number != 2:
            yield event(
                "COMPLETE",
                run,
                "stream_app.batch",
                302 + 10 * number,
                [],
                [sink],
                facets,
                STREAMING,
            )
    yield event("START", 131, "stream_app", 330)


def flink() -> Iterator[Json]:
    """Flink: one run, RUNNING at checkpoints with facets that nobody published, a terminal event before the last ones."""
    kind = {"jobType": {"processingType": "STREAMING", "integration": "FLINK", "jobType": "JOB"}}
    topic = dataset("payments", "kafka://broker:9092", schema=schema("id", "amount"))
    table = dataset("bank.flink", symlinks=symlink("flink", "file", "LOCATION"))
    yield event("START", "flink-job-1", "flink", 400, [topic], [table], job_facets=kind)
    for number in range(3):
        facets = {
            "checkpoints": {
                "completed": number,
                "failed": 0,
                "in_progress": 0,
                "restored": 0,
                "total": number,
            }
        }
        yield event("RUNNING", "flink-job-1", "flink", 410 + number, facets=facets, job_facets=kind)
    yield event(
        "ABORT",
        "flink-job-1",
        "flink",
        411,
        facets={"x": {"unknown": [1, {"deep": None}]}},
        job_facets=kind,
    )
    yield event("OTHER", "flink-job-1", "flink", 420, [dataset("bank.late")])
    yield event(None, "flink-job-1", "flink", 421, outputs=[dataset("bank.late")])


def ours() -> Iterator[Json]:
    """Our emitter's streaming query.

    Barriers with snapshots, one aborted, one overwritten, then a new query.
    """
    for barrier in (1, 2, 4):
        read = dataset(
            "bank.transfers", own=snapshot(f"10{barrier}", fromSnapshotId=f"10{barrier - 1}")
        )
        made = dataset(
            "bank.balances", own=snapshot(f"20{barrier}", barrierId=barrier, parentSnapshotId="1")
        )
        yield batch(
            barrier, 150, "balances", inputs=[read], outputs=[made], barrier_facet={"group": "bank"}
        )
    yield batch(3, 150, "balances", barrier_facet={"phase": "skipped"})
    yield batch(
        4,
        150,
        "balances",
        4.5,
        outputs=[dataset("bank.balances", own=snapshot("2040", barrierId=4))],
    )
    yield event("FAIL", 150, "balances", 5)
    again = dataset("bank.balances", own=snapshot("301", barrierId=1))
    yield batch(1, 151, "balances", 10, query=run_id(98), outputs=[again])


def designs() -> Iterator[Json]:
    """Events without a run: a job's design, twice, its lineage stated.

    Datasets, whose facets go again.
    """
    entry = {"namespace": "hive://lake", "name": "mart.view", "type": "DATASET"}
    source = {"namespace": "hive://lake", "name": "mart.orders", "type": "DATASET"}
    stated = {
        "lineage": {
            "entries": [
                entry
                | {"inputs": [source], "fields": {"id": {"inputs": [source | {"field": "id"}]}}}
            ]
        }
    }
    yield job_event(
        "view",
        500,
        inputs=[dataset("mart.orders")],
        outputs=[dataset("mart.view")],
        job_facets=stated,
    )
    yield job_event("view", 501, inputs=[], outputs=[dataset("mart.view", lineage={"inputs": []})])
    yield job_event(
        "bare",
        502,
        inputs=None,
        outputs=None,
        job_facets={"tags": {"tags": [{"key": "pii", "value": "1"}]}},
    )
    for second, facets in ((510, {"documentation": {"description": "old"}}), (511, {"documentation": GONE}),
                           (510, {"tags": {"tags": []}, "symlinks": symlink("/lake/mart.db/view", "s3://lake", "LOCATION")}),
                           (511, {"symlinks": {"identifiers": "broken"}, "": {"empty": "key"}})):  # fmt: skip
        yield dataset_event("mart.view", second, facets)


def renamed() -> Iterator[Json]:
    """A table whose catalog and other name are said, taken back, and said again."""
    other = symlink("/lake/mart.db/moved", "s3://lake", "LOCATION")
    catalogs = [
        {"name": name, "framework": "iceberg", "type": "hive"} for name in ("one", "two", "one")
    ]
    for second, (catalog, symlinks) in enumerate(zip(catalogs, (other, GONE, other), strict=True)):
        yield dataset_event("mart.moved", 520 + second, {"catalog": catalog, "symlinks": symlinks})
    for second, symlinks in enumerate((other, GONE)):
        yield dataset_event("mart.parted", 530 + second, {"symlinks": symlinks})
    yield event(
        "START",
        180,
        "mover",
        540,
        [dataset("mart.parted"), dataset("/lake/mart.db/moved", "s3://lake")],
    )


def dataset_event(name: str, seconds: float, facets: Json) -> Json:
    """A DatasetEvent."""
    named = {"namespace": "hive://lake", "name": name, "facets": facets}
    url = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"
    return {
        "eventTime": at(seconds),
        "producer": "https://example.com",
        "schemaURL": url,
        "dataset": named,
    }


def standing_alone() -> Iterator[Json]:
    """A job whose events each stand for themselves.

    What one says of edges is not mixed with another's.
    """
    alone = {
        "jobType": {
            "processingType": "BATCH",
            "integration": "X",
            "emissionPattern": "COMPLETE_SNAPSHOT",
        }
    }
    for second, source in ((600, "bank.a"), (601, "bank.b")):
        yield event(
            "RUNNING",
            160,
            "alone",
            second,
            [dataset(source)],
            [dataset("bank.c")],
            job_facets=alone,
        )


def no_events() -> list[bytes]:
    """Records that become dead letters, and one whose secrets go."""
    secret = dataset("orders", "jdbc:postgresql://ann:pw@db:5432/bank?password=pw")
    return [
        b"",
        b"{}",
        b'{"eventTime": "2026-01-01T00:00:00Z"}',
        encode(event("START", 170, "reader", 700, [secret])),
    ]


def a_day() -> list[bytes]:
    """All of them."""
    told: list[Any] = [
        airflow(),
        dbt(),
        spark(),
        spark_streams(),
        flink(),
        ours(),
        designs(),
        renamed(),
        standing_alone(),
    ]
    return [encode(one) for events in told for one in events] + no_events()
