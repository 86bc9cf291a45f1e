"""What is relied on of Spark's and Iceberg's internals is tried; what is not here is named once, and its fallback taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from emitter_world.builders import APPLICATION, Sent, announcer
from strandline_spark.formats.done import phase_begun
from strandline_spark.jvm import internals
from strandline_spark.jvm.client import Jvm, _class_names, class_names_hold
from strandline_spark.jvm.internals import Internal, unavailable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # PySpark leaves sockets to the gc
]


def test_everything_is_here_with_the_versions_that_are_locked(lake: Any) -> None:
    assert unavailable(Jvm(lake._jvm)) == ()


def test_a_field_that_is_gone_is_named_in_the_log(
    lake: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Internal("org.apache.iceberg.spark.source.SparkWrite", "renamed", "which commit a write made")
    elsewhere = Internal("org.apache.iceberg.NoSuchClass", "renamed", "nothing, for there is no such class")
    monkeypatch.setattr(internals, "FIELDS", (gone, elsewhere))

    assert unavailable(Jvm(lake._jvm)) == ("which commit a write made",)
    assert "not available with these versions: which commit a write made" in caplog.text


def test_without_commons_lang3_class_names_are_asked_for_in_two_calls(
    lake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline_spark.jvm.client._CLASS_UTILS", "org.apache.commons.lang4.ClassUtils")
    client = lake._jvm._gateway_client
    for cached in (class_names_hold, _class_names):
        cached.cache_clear()
    try:
        assert class_names_hold(client) is False
        assert _class_names(client)(lake._jvm.java.lang.Object()) == "java.lang.Object"
    finally:
        for cached in (class_names_hold, _class_names):
            cached.cache_clear()


def test_phases_that_show_themselves_otherwise_are_asked_for() -> None:
    shown: Any = SimpleNamespace(toString=lambda: "Map(parsing -> x, analysis -> PhaseSummary(17, 18))")
    otherwise: Any = SimpleNamespace(
        toString=lambda: "Map(analysis -> [17 ms ... 18 ms])",
        apply=lambda phase: SimpleNamespace(startTimeMs=lambda: 17),
    )

    assert [phase_begun(phases) for phases in (shown, otherwise)] == [17, 17]


def test_what_is_not_available_is_said_in_one_event() -> None:
    sent = Sent()
    telling = announcer(sent)
    telling.unavailable = ("which commit a write made",)

    telling.say("START", APPLICATION, 1.0)
    telling.say("COMPLETE", APPLICATION, 2.0)

    first, second = (event["run"]["facets"] for event in sent.events)
    assert first["strandline_emitter"]["unavailable"] == ["which commit a write made"]
    assert "strandline_emitter" not in second
