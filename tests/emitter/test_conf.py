"""The conf: the OpenLineage listener's keys keep their meaning, ours have defaults, and wrong values stop nothing."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from fixtures.emitter.builders import Sent, announcer, insert, table
from strandline_spark.application_name import application_name
from strandline_spark.conf import Conf, Parent, conf_of
from strandline_spark.consistency.collector import Collector
from strandline_spark.listeners.shaping import shaped
from strandline_spark.model.statement import Origin
from strandline_spark.openlineage.events import RunOf

RUN_ID = "22222222-2222-4222-8222-222222222222"


def given(**entries: str) -> Conf:
    """The conf of these `spark.openlineage.*` keys; `a__b` stands for a.b."""
    return conf_of(
        {f"spark.openlineage.{key.replace('__', '.')}": value for key, value in entries.items()}, {}
    )


def test_empty_conf_leaves_the_emitter_off_with_defaults() -> None:
    conf = conf_of({"spark.app.name": "bank"}, {"HOME": "/home/ann"})

    assert (conf.enabled, conf.app_name, conf.namespace, conf.heartbeat_seconds) == (
        False,
        "bank",
        "default",
        60.0,
    )
    assert conf.spool_dir == Path("/home/ann/.local/state/strandline/spool")


@pytest.mark.parametrize(
    ("entries", "transport"),
    [
        ({}, {}),
        ({"transport__url": "http://c"}, {"type": "http", "url": "http://c"}),
        (
            {"transport__type": "kafka", "transport__properties__bootstrap__servers": "b:9092"},
            {"type": "kafka", "properties.bootstrap.servers": "b:9092"},
        ),
    ],
)
def test_listener_keys_define_the_transport(
    entries: dict[str, str], transport: dict[str, str]
) -> None:
    assert given(**entries).transport == transport


def test_collector_address_alone_is_enough() -> None:
    conf = conf_of({"spark.strandline.collector.url": "http://127.0.0.1:5000"}, {})

    assert conf.transport == {"type": "http", "url": "http://127.0.0.1:5000"}


@pytest.mark.parametrize(
    ("entries", "transport"),
    [
        (
            {"transport__auth__apiKey": "k3y"},
            {"type": "http", "url": "http://c", "auth.apiKey": "k3y"},
        ),
        (
            {"transport__auth__api_key": "k3y"},
            {"type": "http", "url": "http://c", "auth.api_key": "k3y"},
        ),
        ({"transport__type": "http"}, {"type": "http", "url": "http://c", "auth.apiKey": "t0ken"}),
        (
            {"transport__url": "http://c"},
            {"type": "http", "url": "http://c", "auth.apiKey": "t0ken"},
        ),
        ({"transport__url": "http://other"}, {"type": "http", "url": "http://other"}),
        ({"transport__type": "console"}, {"type": "console"}),
    ],
)
def test_transport_without_address_uses_that_of_the_collector(
    entries: dict[str, str], transport: dict[str, str]
) -> None:
    theirs = {
        f"spark.openlineage.{key.replace('__', '.')}": value for key, value in entries.items()
    }
    ours = {
        "spark.strandline.collector.url": "http://c",
        "spark.strandline.collector.token": "t0ken",
    }

    assert conf_of(theirs | ours, {}).transport == transport


def key_of(
    tmp_path: Path, more: dict[str, str], environ: dict[str, str]
) -> tuple[str | None, tuple[str, ...]]:
    """The key that events are sent with, and what is at fault.

    FOLDER stands for a folder with files.
    """
    (tmp_path / "key").write_text("of a file\n")
    (tmp_path / "empty").write_text("\n")
    own = {"spark.strandline.collector.url": "http://c", **more}
    given = [
        {key: value.replace("FOLDER", str(tmp_path)) for key, value in one.items()}
        for one in (own, environ)
    ]
    conf = conf_of(*given)
    return conf.transport.get("auth.apiKey"), tuple(
        one.replace(str(tmp_path), "FOLDER") for one in conf.faults
    )


CONF, FILE = "spark.strandline.collector.token", "spark.strandline.collector.token.file"


@pytest.mark.parametrize(
    ("more", "environ", "key", "faults"),
    [
        ({}, {}, None, ()),
        ({FILE: "FOLDER/key"}, {}, "of a file", ()),
        ({CONF: "of conf", FILE: "FOLDER/key"}, {"STRANDLINE_KEY": "of environ"}, "of conf", ()),
        ({FILE: "FOLDER/key"}, {"STRANDLINE_KEY": "of environ"}, "of a file", ()),
        (
            {},
            {"STRANDLINE_KEY": "of environ", "STRANDLINE_KEY_FILE": "FOLDER/key"},
            "of environ",
            (),
        ),
        ({}, {"STRANDLINE_KEY_FILE": "FOLDER/key"}, "of a file", ()),
        (
            {FILE: "FOLDER/none"},
            {"STRANDLINE_KEY": "of environ"},
            "of environ",
            (
                f"{FILE}: FOLDER/none cannot be read (No such file or directory): no key is taken from it",
            ),
        ),
        (
            {},
            {"STRANDLINE_KEY_FILE": "FOLDER/empty"},
            None,
            ("STRANDLINE_KEY_FILE: FOLDER/empty is empty: no key is taken from it",),
        ),
        (
            {"spark.openlineage.transport.auth.apiKey": "theirs"},
            {"STRANDLINE_KEY": "of environ"},
            "theirs",
            (),
        ),
        (
            {"spark.openlineage.transport.url": "http://other"},
            {"STRANDLINE_KEY": "of environ"},
            None,
            (),
        ),
    ],
)
def test_collector_key_can_come_from_a_file_or_the_environment(
    tmp_path: Path,
    more: dict[str, str],
    environ: dict[str, str],
    key: str | None,
    faults: tuple[str, ...],
) -> None:
    """Neither shows the key on Spark's page or command line; only the collector gets it."""
    assert key_of(tmp_path, more, environ) == (key, faults)


def test_readers_use_the_same_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("of a file\n")
    monkeypatch.setenv("STRANDLINE_KEY_FILE", str(tmp_path / "key"))

    collector = Collector.in_conf({"spark.strandline.collector.url": "http://c"}.get)

    assert collector is not None
    assert collector._headers()["Authorization"] == "Bearer of a file"


def test_spool_falls_back_to_the_temporary_directory_without_a_home(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)

    state = Path(tempfile.gettempdir()) / f"strandline-{os.getuid()}" / ".local" / "state"
    assert conf_of({}, {}).spool_dir == state / "strandline" / "spool"


@pytest.mark.parametrize(
    "environ", [{"OPENLINEAGE_DISABLED": "true"}, {"OPENLINEAGE_DISABLED": " TRUE "}]
)
def test_environment_variable_disables_the_emitter(environ: dict[str, str]) -> None:
    assert conf_of({"spark.strandline.enabled": "true"}, environ).disabled


def test_conf_disables_the_emitter() -> None:
    assert given(disabled="true").disabled


def test_scheduler_run_becomes_parent_and_its_parent_becomes_root() -> None:
    conf = given(
        parentJobNamespace="airflow",
        parentJobName="dag.task",
        parentRunId=RUN_ID,
        rootParentJobNamespace="airflow",
        rootParentJobName="dag",
        rootParentRunId=RUN_ID.replace("2", "3"),
    )

    assert conf.parent == Parent("airflow", "dag.task", RUN_ID)
    assert conf.root == Parent("airflow", "dag", RUN_ID.replace("2", "3"))


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        (
            "spark.strandline.heartbeat.seconds",
            "soon",
            "spark.strandline.heartbeat.seconds: 'soon' is not a number: 60 is used",
        ),
        (
            "spark.strandline.queue.size",
            "0",
            "spark.strandline.queue.size: 0 is not above 0: 1000 is used",
        ),
        (
            "spark.openlineage.dataset.removePath.pattern",
            "(",
            (
                "spark.openlineage.dataset.removePath.pattern: missing ), unterminated subpattern at position 0: "
                "it is not used"
            ),
        ),
        (
            "spark.strandline.job.removePattern",
            "(",
            (
                "spark.strandline.job.removePattern: missing ), unterminated subpattern at position 0: "
                "it is not used"
            ),
        ),
        (
            "spark.openlineage.columnLineage.schemaSizeLimit",
            "many",
            "spark.openlineage.columnLineage.schemaSizeLimit: 'many' is not a number: there is no limit",
        ),
    ],
)
def test_invalid_value_is_reported_and_replaced(key: str, value: str, fault: str) -> None:
    assert conf_of({key: value}, {}).faults == (fault,)


def test_invalid_parent_run_is_reported_and_omitted() -> None:
    conf = given(parentJobName="dag", parentRunId="manual__2026")

    assert (conf.parent, conf.faults) == (
        None,
        (
            "spark.openlineage.parentRunId: 'manual__2026' is not a UUID: the parent is not reported",
        ),
    )


def test_facets_can_be_switched_off_one_by_one() -> None:
    conf = given(
        facets__processing_engine__disabled="true", facets__spark_properties__disabled="true"
    )
    sent = Sent()
    announcer(sent, conf).say("START", RunOf(RUN_ID, "bank", "BATCH"), 0)

    assert sorted(sent.events[0]["run"]["facets"]) == ["parent", "strandline_heartbeat"]


def test_captured_properties_are_sent_with_start_without_secrets() -> None:
    conf = conf_of(
        {
            "spark.openlineage.capturedProperties": "spark.master,spark.hadoop.fs.s3a.secret.key,spark.not.there",
            "spark.master": "local[2]",
            "spark.hadoop.fs.s3a.secret.key": "hunter2",
        },
        {},
    )
    sent = Sent()
    say = announcer(sent, conf).say
    say("START", RunOf(RUN_ID, "bank", "BATCH"), 0)
    say("COMPLETE", RunOf(RUN_ID, "bank", "BATCH"), 1)

    start, complete = (event["run"]["facets"] for event in sent.events)
    assert start["spark_properties"]["properties"] == {
        "spark.master": "local[2]",
        "spark.hadoop.fs.s3a.secret.key": "***",
    }
    assert "spark_properties" not in complete


def test_start_of_an_application_carries_the_id_that_spark_shows() -> None:
    sent = Sent()
    say = announcer(sent, conf_of({"spark.app.id": "application_1729097245443_0002"}, {})).say
    say("START", RunOf(RUN_ID, "bank", "APPLICATION"), 0)
    say("START", RunOf(RUN_ID, "bank", "BATCH"), 1)

    application, batch = (event["run"]["facets"] for event in sent.events)
    details = application["spark_applicationDetails"]
    assert details["applicationId"] == "application_1729097245443_0002"
    assert "spark_applicationDetails" not in batch


def test_column_lineage_respects_its_limit_and_filter_option() -> None:
    statement = insert(table("bank.credits"), table("bank.transfers"))
    filtered = Origin(("file", "/warehouse/bank/transfers"), "who", "INDIRECT", "FILTER")
    with_filter = type(statement)(
        statement.kind, statement.inputs, statement.outputs, statement.columns, indirect=(filtered,)
    )

    limited = shaped(with_filter, given(columnLineage__schemaSizeLimit="0"))
    spread = shaped(with_filter, given(columnLineage__datasetLineageEnabled="false"))

    assert (limited.columns, limited.indirect) == ((), ())
    assert spread.indirect == ()
    assert spread.columns[0].origins[-1] == filtered


def test_date_in_the_application_name_is_cut_where_the_pattern_matches_it() -> None:
    dated = {
        "spark.app.name": "nightly-2026-11-28",
        "spark.strandline.job.removePattern": r"-\d{4}-\d{2}-\d{2}",
    }
    assert conf_of(dated, {}).app_name == "nightly"
    assert conf_of({**dated, "spark.app.name": "-2026-11-28"}, {}).app_name == "-2026-11-28"
    given = {**dated, "spark.openlineage.appName": "bank-2026-11-28"}
    assert conf_of(given, {}).app_name == "bank-2026-11-28"


@pytest.mark.parametrize(
    ("entries", "environ", "name"),
    [
        ({"spark.app.name": "nightly"}, {}, "nightly"),
        ({"spark.app.name": "nightly", "spark.openlineage.appName": "bank"}, {}, "bank"),
        ({"spark.app.name": "cli.py", "spark.openlineage.appName": "cli.py"}, {}, "cli.py"),
        ({"spark.app.name": "pyspark-shell"}, {"JPY_SESSION_NAME": "/n/risk.ipynb"}, "risk.ipynb"),
    ],
)
def test_application_is_named_the_same_in_every_run(
    entries: dict[str, str], environ: dict[str, str], name: str
) -> None:
    conf = conf_of(entries, environ)

    assert (conf.app_name, conf.faults) == (name, ())


@pytest.mark.parametrize(
    "name", ["pyspark-shell", "cli.py", "3f0e2a52-9d14-4b56-8a51-6d0c8a4d7e11"]
)
def test_application_without_a_name_is_named_for_its_script_or_warns(name: str) -> None:
    assert application_name({"spark.app.name": name}, {}, "/jobs/nightly.py") == (
        "nightly.py",
        None,
    )
    shell, warning = application_name({"spark.app.name": name}, {}, "/lib/ipykernel_launcher.py")
    assert shell == name
    assert warning is not None
    assert warning.endswith(": set spark.openlineage.appName")
