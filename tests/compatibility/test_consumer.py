"""OpenLineage's consumer scenarios against a real server, by the validator that would be submitted upstream."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from compatibility.consumers.strandline.validator.validator import differences, main
from fixtures.emitter.schemas import faults_of
from fixtures.servers import serving

HERE = Path(__file__).parent
OWN = HERE / "consumers" / "strandline" / "scenarios"
SHARED = {
    "CLL",
    "airflow",
    "simple_run_event",
    "spark_dataproc_bigquery_shakespare",
    "spark_dataproc_simple_producer_test",
}


def test_every_scenario_succeeds_and_is_reported_in_the_required_format(
    engine: Engine, tmp_path: Path
) -> None:
    target = tmp_path / "report.json"
    with serving(engine) as address:
        code = main(["--url", address, "--target", str(target)])
    (report,) = json.loads(target.read_text())

    failed = [
        one
        for scenario in report["scenarios"]
        for test in scenario["tests"]
        for one in test["details"]
    ]
    assert (code, failed) == (0, [])
    assert {
        scenario["name"]: scenario["status"] for scenario in report["scenarios"]
    } == dict.fromkeys(SHARED | {"streaming"}, "SUCCESS")
    assert set(report) == {
        "name",
        "component_type",
        "component_version",
        "openlineage_version",
        "scenarios",
    }
    tests = [test for scenario in report["scenarios"] for test in scenario["tests"]]
    assert {frozenset(test) for test in tests} == {
        frozenset({"name", "status", "validation_type", "entity_type", "details", "tags"})
    }


def test_validator_detects_wrong_answers(engine: Engine, tmp_path: Path) -> None:
    own, shared = tmp_path / "own", tmp_path / "shared"
    shutil.copytree(OWN / "simple_run_event", own / "simple_run_event")
    shutil.copytree(HERE / "scenarios" / "simple_run_event", shared / "simple_run_event")
    expected = own / "simple_run_event" / "validation" / "runs.json"
    expected.write_text(expected.read_text().replace('"COMPLETE"', '"FAIL"'))
    (shared / "simple_run_event" / "events" / "03_odd.json").write_text("{}")

    with serving(engine) as address:
        code = main(
            [
                "--url",
                address,
                "--scenarios",
                str(shared),
                "--own",
                str(own),
                "--target",
                str(tmp_path / "report"),
            ]
        )
    tests = json.loads((tmp_path / "report").read_text())[0]["scenarios"][0]["tests"]

    assert code == 1
    assert [(test["name"], test["status"]) for test in tests] == [
        ("events", "FAILURE"), ("runs", "FAILURE"), ("datasets", "SUCCESS"), ("lineage", "SUCCESS"),
    ]  # fmt: skip
    assert "03_odd.json: 422" in tests[0]["details"][0]
    assert 'expected "FAIL", found "COMPLETE"' in tests[1]["details"][0]


@pytest.mark.parametrize(
    ("expected", "found", "different"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, 0),
        ({"a": 1}, {"a": 2}, 1),
        ({"a": {"b": None}}, {"a": {}}, 1),
        ([{"a": 1}], [{"a": 2}, {"a": 1, "b": 3}], 0),
        ([{"a": 1}, {"a": 9}], [{"a": 1}], 1),
    ],
)
def test_answer_may_contain_more_but_not_less_than_expected(
    expected: Any, found: Any, different: int
) -> None:
    assert len(list(differences(expected, found))) == different


def test_every_event_of_the_scenarios_follows_openlineage_s_schema() -> None:
    events = {
        str(file.relative_to(HERE)): json.loads(file.read_text())
        for file in HERE.rglob("events/*.json")
    }

    assert len(events) == 22
    assert {name: faults for name, event in events.items() if (faults := faults_of(event))} == {}


def test_every_facet_of_the_scenarios_is_mapped() -> None:
    mapping = json.loads((OWN.parent / "mapping.json").read_text())
    events = [json.loads(file.read_text()) for file in HERE.rglob("events/*.json")]
    holders = [
        part
        for event in events
        for part in (event["run"], event["job"], *event["inputs"], *event["outputs"])
    ]
    facets = {
        key
        for holder in holders
        for kind in ("facets", "outputFacets")
        for key in holder.get(kind, {})
    }

    assert facets - mapping["mapped"].keys() - mapping["knownUnmapped"].keys() == set()
