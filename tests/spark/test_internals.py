"""Private fields that are relied on are looked for; missing ones are logged."""

from __future__ import annotations

from typing import Any

import pytest

from fixtures.emitter.builders import APPLICATION, Sent, announcer
from strandline_spark.formats.registry import relied_on
from strandline_spark.jvm.class_names import Internal
from strandline_spark.jvm.client import Jvm, dotted
from strandline_spark.jvm.internals import unavailable
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


def test_unexpected_micro_batch_description_is_counted() -> None:
    assert micro_batch_of("copy\nrunId = 1, batch 7") is None
    assert counted()["a micro-batch is taken for a statement (ValueError)"] >= 1


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
