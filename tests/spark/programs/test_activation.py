"""Activation: several contexts in one program, sessions, a forked child, the environment."""

from __future__ import annotations

import re
from typing import Any

import pytest

from deploy import jars
from fixtures.emitter.drivers import SparkProgram, emitting

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NOTEBOOK = """
import json, os, sys
from pyspark.sql import SparkSession

said = {}

def context(**conf):
    builder = SparkSession.builder
    for key, value in {"spark.strandline.enabled": "true", **{k.replace("__", "."): v for k, v in conf.items()}}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

def write(spark, name):
    spark.range(3).write.mode("overwrite").parquet(name)

spark = context(spark__strandline__enabled="false", spark__app__name="off")
write(spark, "never")
said["loaded while off"] = "strandline_spark.activation" in sys.modules
import strandline_spark
said["enabled by hand"] = strandline_spark.enable(spark)
said["enabled again"] = strandline_spark.enable(spark)
write(spark, "asked_for")
strandline_spark.disable(spark)
strandline_spark.disable(spark)
write(spark, "never")
spark.stop()
strandline_spark.disable(spark)

spark = context(spark__app__name="first")
write(spark, "of_a_session")
write(spark.newSession(), "of_another_session")
child = os.fork()
if child == 0:
    sys.exit(0)
said["child ended with"] = os.waitpid(child, 0)[1]
spark.stop()

spark = context(spark__app__name="second")
write(spark, "of_the_next_context")
spark.stop()

os.environ["OPENLINEAGE_DISABLED"] = "true"
spark = context(spark__app__name="disabled")
said["enabled in spite of the environment"] = strandline_spark.enable(spark)
write(spark, "never")
spark.stop()
del os.environ["OPENLINEAGE_DISABLED"]

spark = context(
    spark__app__name="stock", spark__extraListeners="io.openlineage.spark.agent.OpenLineageSparkListener",
    spark__openlineage__transport__type="console",
)
said["enabled beside the stock listener"] = strandline_spark.enable(spark)
write(spark, "never")
spark.stop()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory, java: str) -> tuple[SparkProgram, Any, str]:
    """The program, run to its end: the driver, what it said, and its standard error."""
    folder = tmp_path_factory.mktemp("notebook")
    conf = emitting(folder)
    del conf["spark.strandline.enabled"], conf["spark.openlineage.appName"]
    try:
        conf["spark.jars"] = jars.comma_list(["openlineage-2.13"])
    except jars.JarsError as error:
        pytest.skip(f"no stock listener here: {error}")
    driver = SparkProgram(folder, NOTEBOOK, conf)
    ran = driver.run()
    assert ran.code == 0, ran.err[-2000:]
    return driver, ran.answer(), ran.err


def test_emitter_is_not_loaded_while_disabled(notebook: tuple[SparkProgram, Any, str]) -> None:
    assert notebook[1]["loaded while off"] is False


def test_notebook_switches_the_emitter_on_and_off(notebook: tuple[SparkProgram, Any, str]) -> None:
    driver, said, _ = notebook

    assert (said["enabled by hand"], said["enabled again"]) == (True, True)
    assert [line for line in driver.lines() if line.split()[1].startswith("off")] == [
        "START off [] -> []",
        "START off.~/asked_for [] -> [asked_for]",
        "COMPLETE off.~/asked_for [] -> [asked_for]",
        "ABORT off [] -> []",
    ]


def test_each_context_is_one_application_with_all_its_sessions(
    notebook: tuple[SparkProgram, Any, str],
) -> None:
    lines = notebook[0].lines()

    assert [line for line in lines if line.split()[1].split(".")[0] in ("first", "second")] == [
        "START first [] -> []",
        "START first.~/of_a_session [] -> [of_a_session]",
        "COMPLETE first.~/of_a_session [] -> [of_a_session]",
        "START first.~/of_another_session [] -> [of_another_session]",
        "COMPLETE first.~/of_another_session [] -> [of_another_session]",
        "COMPLETE first [] -> []",
        "START second [] -> []",
        "START second.~/of_the_next_context [] -> [of_the_next_context]",
        "COMPLETE second.~/of_the_next_context [] -> [of_the_next_context]",
        "COMPLETE second [] -> []",
    ]


def test_forked_child_exits_normally(notebook: tuple[SparkProgram, Any, str]) -> None:
    assert notebook[1]["child ended with"] == 0


def test_environment_can_disable_the_emitter(notebook: tuple[SparkProgram, Any, str]) -> None:
    assert notebook[1]["enabled in spite of the environment"] is False


def test_emitter_stays_off_beside_the_stock_listener_and_logs_it(
    notebook: tuple[SparkProgram, Any, str],
) -> None:
    _, said, err = notebook

    assert said["enabled beside the stock listener"] is False
    assert "the OpenLineage listener is on in spark.extraListeners: Strandline stands back" in err


def test_log_names_the_destination_once_per_application(
    notebook: tuple[SparkProgram, Any, str],
) -> None:
    driver, _, err = notebook
    place = re.escape(f"strandline: events go to the file {driver.events_file}; jobs are ")

    assert re.findall(place + r"(.*)\.\{output\} in namespace default", err) == [
        "off",
        "first",
        "second",
    ]


def test_no_other_jobs_are_reported(notebook: tuple[SparkProgram, Any, str]) -> None:
    jobs = {event["job"]["name"].split(".")[0] for event in notebook[0].events()}

    assert jobs == {"off", "first", "second"}
