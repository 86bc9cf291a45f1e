"""Spark and Iceberg internals are probed; missing ones are logged and have fallbacks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.emitter.builders import APPLICATION, Sent, announcer
from strandline_spark.formats.done import phase_begun
from strandline_spark.formats.registry import relied_on
from strandline_spark.jvm import internals
from strandline_spark.jvm.class_names import LISTENER, Internal
from strandline_spark.jvm.client import Jvm, _class_names, class_names_hold, dotted, optional_text
from strandline_spark.jvm.internals import unavailable
from strandline_spark.jvm.parsed_texts import IDENTIFIER, METRICS, OPTION, TEXTS, ParsedText
from strandline_spark.plans.physical import statistics_of
from strandline_spark.runs.micro_batches import micro_batch_of
from strandline_spark.swallowed import counted

pytestmark = pytest.mark.spark


def test_locked_versions_have_every_internal(lake: Any) -> None:
    assert unavailable(Jvm(lake._jvm), relied_on()) == ()
    assert len(relied_on()) > 5


def test_missing_field_is_named_in_the_log(lake: Any, caplog: pytest.LogCaptureFixture) -> None:
    gone = Internal(
        "org.apache.iceberg.spark.source.SparkWrite", "renamed", "which commit a write made"
    )
    elsewhere = Internal(
        "org.apache.iceberg.NoSuchClass", "renamed", "nothing, for there is no such class"
    )

    assert unavailable(Jvm(lake._jvm), (gone, elsewhere)) == ("which commit a write made",)
    assert "not available with these versions: which commit a write made" in caplog.text


def test_class_names_take_two_calls_without_commons_lang3(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "strandline_spark.jvm.client.CLASS_UTILS", "org.apache.commons.lang4.ClassUtils"
    )
    client = lake._jvm._gateway_client
    for cached in (class_names_hold, _class_names):
        cached.cache_clear()
    try:
        assert class_names_hold(client) is False
        assert _class_names(client)(lake._jvm.java.lang.Object()) == "java.lang.Object"
    finally:
        for cached in (class_names_hold, _class_names):
            cached.cache_clear()


@pytest.mark.parametrize("text", TEXTS, ids=["option", "identifier", "metrics"])
def test_unexpected_text_is_logged_and_its_objects_are_queried(
    text: ParsedText, lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers() -> list[Any]:
        lake.range(3).write.mode("overwrite").parquet(str(tmp_path / "out"))
        lake.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
        option, identifier = (
            jvm.static("scala.Option", "apply"),
            lake._jvm.org.apache.spark.sql.connector.catalog,
        )
        name = identifier.Identifier.of(jvm.array("java.lang.String", "a", "b"), "c")
        ended = [
            event
            for event in iter(queue.poll, None)
            if event.getClass().getSimpleName().endswith("ExecutionEnd")
        ]
        counts = statistics_of(ended[-1].qe())
        return [
            dotted(name),
            optional_text(option("x")),
            optional_text(option(None)),
            counts["rowCount"],
        ]

    jvm, queue = Jvm(lake._jvm), lake._jvm.java.util.concurrent.LinkedBlockingQueue()
    listener = lake._jvm.java.beans.EventHandler.create(
        jvm.class_named(LISTENER), queue, "offer", "", "onOtherEvent"
    )
    lake.sparkContext._jsc.sc().addSparkListener(listener)
    try:
        as_seen = answers()
        monkeypatch.setitem(internals._TRIALS, text, lambda jvm: False)
        found = unavailable(jvm)

        assert found == (text.instead,)
        assert not text.holds
        assert answers() == as_seen == ["a.b.c", "x", None, 3]
    finally:
        lake.sparkContext._jsc.sc().removeSparkListener(listener)
        for one in TEXTS:
            one.holds = True


def test_trial_detects_a_different_text() -> None:
    other: Any = SimpleNamespace(
        static=lambda owner, name: lambda *given: SimpleNamespace(toString=lambda: "Just(a(b))"),
        array=lambda *given: None,
        new=lambda *given: SimpleNamespace(
            toString=lambda: "{rows: 0}", **{"metadata_$eq": lambda one: None}
        ),
    )

    assert [internals._holds(other, text) for text in (OPTION, IDENTIFIER, METRICS)] == [
        False,
        False,
        False,
    ]


def test_unexpected_micro_batch_description_is_counted() -> None:
    assert micro_batch_of("copy\nrunId = 1, batch 7") is None
    assert counted()["a micro-batch is taken for a statement (ValueError)"] >= 1


def test_unexpected_phase_text_is_queried_instead() -> None:
    shown: Any = SimpleNamespace(
        toString=lambda: "Map(parsing -> x, analysis -> PhaseSummary(17, 18))"
    )
    otherwise: Any = SimpleNamespace(
        toString=lambda: "Map(analysis -> [17 ms ... 18 ms])",
        apply=lambda phase: SimpleNamespace(startTimeMs=lambda: 17),
    )

    assert [phase_begun(phases) for phases in (shown, otherwise)] == [17, 17]


def test_missing_internals_are_reported_in_one_event() -> None:
    sent = Sent()
    telling = announcer(sent)
    telling.unavailable = ("which commit a write made",)

    telling.say("START", APPLICATION, 1.0)
    telling.say("COMPLETE", APPLICATION, 2.0)

    first, second = (event["run"]["facets"] for event in sent.events)
    assert first["strandline_emitter"]["unavailable"] == ["which commit a write made"]
    assert "strandline_emitter" not in second


def test_name_keeps_parts_with_dots_apart(lake: Any) -> None:
    jvm = Jvm(lake._jvm)
    identifier = lake._jvm.org.apache.spark.sql.connector.catalog.Identifier

    names = [
        dotted(identifier.of(jvm.array("java.lang.String", *namespace), table))
        for namespace, table in ((["a", "b"], "t"), (["a.b"], "t"), (["a"], "b.t"))
    ]

    assert names == ["a.b.t", "`a.b`.t", "a.`b.t`"]
