"""DataHub gets flows, jobs, runs, columns and snapshots once, under its own urns."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.contract_servers.datahub import DataHubContract
from fixtures.contract_servers.server import Fault
from strandline.cli import main
from strandline.errors import SettingsError
from strandline.exporters.datahub.mapping import read_mapping
from strandline.exporters.datahub.urns import MappingRule, Urns, orchestrator_of
from transports.exporters.conftest import COLUMNS, Export
from worlds.builders import NOON, batch, dataset, event, run_id, snapshot, store, symlink

NOW = NOON.timestamp() + 100
FLOW = "urn:li:dataFlow:(spark,bank,tests)"
JOB = f"urn:li:dataJob:({FLOW},bank.etl)"
SPARK = {
    "jobType": {"processingType": "BATCH", "integration": "SPARK"},
    "ownership": {"owners": [{"name": "team:ops"}, {"name": "ann"}]},
    "tags": {"tags": [{"key": "pii", "value": "true"}, {"key": "tier", "value": "gold"}]},
}
A, B = (f"urn:li:dataset:(urn:li:dataPlatform:hive,db.{name},PROD)" for name in "ab")
SCHEMA = {
    "fields": [{"name": "total", "type": "decimal(10,2)"}, {"name": "at", "type": "timestamp"}]
}


def etl(kind: str, run: int = 1, seconds: float = 0, **more: Any) -> dict[str, Any]:
    """Return an event of a Spark job that makes b of a."""
    inputs = [dataset("db.a", own=snapshot("71"))]
    outputs = [
        dataset("db.b", own=snapshot("72", barrierId=5), columnLineage=COLUMNS, schema=SCHEMA)
    ]
    return event(
        kind, run, "bank.etl", seconds, inputs=inputs, outputs=outputs, job_facets=SPARK, **more
    )


def edges(datahub: DataHubContract, side: str) -> dict[str, dict[str, str]]:
    """Return the datasets of the job, each with the properties of its edge."""
    aspect = datahub.entities[JOB]["dataJobInputOutput"]
    return {
        one["destinationUrn"]: one.get("properties", {}) for one in aspect[f"{side}DatasetEdges"]
    }


def test_a_run_becomes_flow_job_instance_edges_and_columns(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url, datahub_schemas=True)
    store(engine, [etl("START"), etl("COMPLETE", seconds=9)], received_at=NOON)
    exports.deliver(NOW)
    instance = f"urn:li:dataProcessInstance:{run_id(1)}"
    job, run = datahub.entities[JOB], datahub.entities[instance]

    assert set(datahub.entities) == {FLOW, JOB, instance, B}
    assert (job["dataJobInfo"]["name"], job["dataJobInfo"]["type"]) == ("etl", {"string": "BATCH"})
    assert edges(datahub, "input") == {A: {"snapshotId": "71", "format": "iceberg"}}
    assert edges(datahub, "output") == {
        B: {"snapshotId": "72", "barrierId": "5", "format": "iceberg"}
    }
    assert job["dataJobInputOutput"]["fineGrainedLineages"] == [
        {
            "upstreamType": "FIELD_SET",
            "upstreams": [f"urn:li:schemaField:({A},amount)"],
            "downstreamType": "FIELD",
            "downstreams": [f"urn:li:schemaField:({B},total)"],
            "transformOperation": "SUM(amount)",
            "confidenceScore": 1.0,
        }
    ]
    assert [one["owner"] for one in job["ownership"]["owners"]] == [
        "urn:li:corpGroup:ops",
        "urn:li:corpuser:ann",
    ]
    assert [one["tag"] for one in job["globalTags"]["tags"]] == [
        "urn:li:tag:pii",
        "urn:li:tag:tier:gold",
    ]
    assert datahub.run_events[instance] == ["STARTED", "COMPLETE"]
    assert run["dataProcessInstanceRelationships"]["parentTemplate"] == JOB
    assert [one["fieldPath"] for one in datahub.entities[B]["schemaMetadata"]["fields"]] == [
        "total",
        "at",
    ]


def test_unchanged_run_sends_nothing(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url)
    store(engine, [etl("START"), etl("COMPLETE", seconds=9)], received_at=NOON)
    exports.deliver(NOW)
    asked = len(datahub.asked)
    store(engine, [etl("RUNNING", seconds=4), etl("OTHER", seconds=5)], received_at=NOON)
    exports.deliver(NOW + 1)

    assert len(datahub.asked) == asked


@pytest.mark.parametrize(
    ("policy", "inputs", "removed"),
    [("keep", [A], False), ("clear_edges", [], False), ("soft_delete", [A], True)],
)
def test_end_policy_decides_whether_edges_stay(
    engine: Engine,
    exporting: Export,
    datahub: DataHubContract,
    policy: str,
    inputs: list[str],
    removed: bool,
) -> None:
    exports = exporting(datahub_url=datahub.url, datahub_on_end=policy)
    store(engine, [etl("START")], received_at=NOON)
    exports.deliver(NOON.timestamp() + 1)
    running = list(edges(datahub, "input")), datahub.entities[JOB]["status"]["removed"]
    store(engine, [etl("COMPLETE", seconds=9)], received_at=NOON)
    exports.deliver(NOW)

    assert running == ([A], False)
    assert (list(edges(datahub, "input")), datahub.entities[JOB]["status"]["removed"]) == (
        inputs,
        removed,
    )


def test_job_keeps_the_inputs_of_its_other_runs(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url)
    other = event(
        "COMPLETE",
        2,
        "bank.etl",
        20,
        inputs=[dataset("db.us")],
        outputs=[dataset("db.b")],
        job_facets=SPARK,
    )
    store(engine, [etl("COMPLETE", seconds=9), other], received_at=NOON)
    exports.deliver(NOW)

    assert {urn.split(",")[1] for urn in edges(datahub, "input")} == {"db.a", "db.us"}


def test_an_event_without_datasets_clears_nothing(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url)
    store(engine, [etl("START")], received_at=NOON)
    exports.deliver(NOW)
    store(
        engine,
        [event("COMPLETE", 1, "bank.etl", 9), event("COMPLETE", 7, "bank", 10)],
        received_at=NOON,
    )
    exports.deliver(NOW + 1)

    assert list(edges(datahub, "input")) == [A]
    assert not any("bank)" in urn for urn in datahub.entities if "dataJob" in urn)


def test_stream_snapshots_are_sent_once_a_minute(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url)
    start = NOON.timestamp()
    for number in range(1, 50):
        outputs = [dataset("db.b", own=snapshot(str(number), barrierId=number))]
        store(
            engine,
            [batch(number, job="bank.etl", inputs=[dataset("db.a")], outputs=outputs)],
            received_at=NOON,
        )
        exports.deliver(start + number)
    few = len(datahub.asked)
    exports.tidy(start + 61)  # the run is not yet silent
    exports.deliver(start + 61)
    (seen,) = edges(datahub, "output").values()

    assert few <= 4
    assert seen["barrierId"] == "49"


def test_rejected_entity_is_parked_and_the_others_are_delivered(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url)
    bad = f"urn:li:dataProcessInstance:{run_id(1)}"
    datahub.fault = lambda asked: (
        Fault(400) if any(one["urn"] == bad for one in asked.body) else None
    )
    store(engine, [etl("COMPLETE"), etl("COMPLETE", run=2, seconds=5)], received_at=NOON)
    exports.deliver(NOW)

    assert set(datahub.entities) == {FLOW, JOB, f"urn:li:dataProcessInstance:{run_id(2)}"}
    with engine.connect() as connection:
        assert list(connection.exec_driver_sql("SELECT about FROM export_parked").scalars()) == [
            bad
        ]


@pytest.mark.parametrize(
    ("named", "urn"),
    [
        (("s3a://bank", "/lake/t"), "s3,bank/lake/t"),
        (("gs://bank", "lake/t"), "gcs,bank/lake/t"),
        (
            ("abfss://c@acc.dfs.core.windows.net", "/lake/t"),
            "abs,c@acc.dfs.core.windows.net/lake/t",
        ),
        (("file", "/tmp/t"), "file,/tmp/t"),
        (("kafka://broker:9092", "payments"), "kafka,payments"),
        (("postgres://db:5432", "bank.public.t"), "postgres,bank.public.t"),
        (("sqlserver://db:1433", "bank.dbo.t"), "mssql,bank.dbo.t"),
        (("food_delivery", "public.menus"), "food_delivery,public.menus"),
        (("file", "/a,b(c)%"), "file,/a%2Cb%28c%29%25"),
    ],
)
def test_names_become_urns_as_datahub_makes_them(named: tuple[str, str], urn: str) -> None:
    assert Urns().dataset(*named) == f"urn:li:dataset:(urn:li:dataPlatform:{urn},PROD)"


def test_the_last_table_symlink_wins_and_a_mapping_changes_urns() -> None:
    links = [
        ("s3://b", "x", "LOCATION"),
        ("hive://m", "db.old", "TABLE"),
        ("hive://m", "db.t", "TABLE"),
    ]
    glue = [("arn:aws:glue:eu-west-1:1", "table/db/t", "TABLE")]
    rules = (
        MappingRule(catalog="lake", platform="hive", platform_instance="us", name="{table}"),
        MappingRule(namespace="s3://*", platform_instance="eu"),
    )
    mapped = Urns(env="DEV", mapping=rules)

    assert (
        Urns().dataset("s3://b", "wh/t", links)
        == "urn:li:dataset:(urn:li:dataPlatform:hive,db.t,PROD)"
    )
    assert (
        Urns().dataset("s3://b", "wh/t", glue)
        == "urn:li:dataset:(urn:li:dataPlatform:glue,db.t,PROD)"
    )
    iceberg = {"catalog": "lake", "table_format": "iceberg"}
    assert Urns().dataset("s3://b", "wh/t", links, **iceberg).endswith("iceberg,lake.db.t,PROD)")
    assert mapped.dataset("s3://b", "wh/t", links, **iceberg).endswith("hive,us.db.t,DEV)")
    assert mapped.dataset("s3://b", "wh/t", links).endswith("hive,eu.db.t,DEV)")


def test_orchestrator_comes_from_the_setting_or_the_events() -> None:
    producer = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/dbt"

    assert orchestrator_of("Airflow", "SPARK", "spark", producer) == "airflow"
    assert orchestrator_of(None, "SPARK", None, producer) == "spark"
    assert orchestrator_of(None, None, "Flink", producer) == "flink"
    assert orchestrator_of(None, None, None, producer) == "dbt"
    assert Urns(env="DEV").flow("spark", "app.job", "ns") == "urn:li:dataFlow:(spark,app,DEV)"


def test_tables_of_two_catalogs_have_two_urns(
    engine: Engine, exporting: Export, datahub: DataHubContract
) -> None:
    exports = exporting(datahub_url=datahub.url)
    tables = [
        dataset(
            "wh/db/t",
            f"s3://{name}",
            symlinks=symlink("db.t", f"http://{name}"),
            catalog={"name": name, "framework": "iceberg"},
        )
        for name in ("lake", "pond")
    ]
    store(
        engine,
        [event("COMPLETE", 1, "bank.etl", inputs=tables, job_facets=SPARK)],
        received_at=NOON,
    )
    exports.deliver(NOW)

    assert sorted(edges(datahub, "input")) == [
        "urn:li:dataset:(urn:li:dataPlatform:iceberg,lake.db.t,PROD)",
        "urn:li:dataset:(urn:li:dataPlatform:iceberg,pond.db.t,PROD)",
    ]


def test_dry_run_names_the_urns_that_would_merge(
    sqlite_engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = [
        dataset("db.t", f"s3://{name}", symlinks=symlink("db.t", f"hive://{name}")) for name in "ab"
    ]
    store(sqlite_engine, [event("COMPLETE", 1, "bank.etl", inputs=links, job_facets=SPARK)])
    url = sqlite_engine.url.render_as_string(hide_password=False)

    assert (
        main(["export", "--to", "datahub", "x.json", "--dry-run", "--database-url", url], {}) == 0
    )
    assert capsys.readouterr().err == (
        "strandline: urn:li:dataset:(urn:li:dataPlatform:hive,db.t,PROD) "
        "would merge s3://a:db.t, s3://b:db.t\n"
    )


def test_dry_run_names_the_jobs_that_an_environment_would_merge(
    sqlite_engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        event("COMPLETE", run, "bank.etl", inputs=[dataset("db.t")], job_facets=SPARK)
        for run in (1, 2)
    ]
    for namespace, body in zip("ab", events, strict=True):
        body["job"]["namespace"] = namespace
    store(sqlite_engine, events)
    url = sqlite_engine.url.render_as_string(hide_password=False)
    command = ["export", "--to", "datahub", "x.json", "--dry-run", "--database-url", url]

    apart = main(command, {}), capsys.readouterr().err
    merged = main(command, {"STRANDLINE_DATAHUB_ENV": "TEST"}), capsys.readouterr().err

    assert apart == (0, "")
    urn = "urn:li:dataJob:(urn:li:dataFlow:(spark,bank,TEST),bank.etl)"
    assert merged == (0, f"strandline: {urn} would merge a:bank.etl, b:bank.etl\n")


def test_mapping_file_is_read_and_its_faults_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "mapping.toml"
    file.write_text('[[dataset]]\ncatalog = "lake"\nplatform = "hive"\n')
    read = read_mapping(str(file))
    file.write_text('[[dataset]]\nplatfrom = "hive"\n')

    assert read == (MappingRule(catalog="lake", platform="hive"),)
    with pytest.raises(SettingsError, match="unknown member platfrom"):
        read_mapping(str(file))
