"""Sources and targets that a plan does not name are said to be unknown."""

from __future__ import annotations

from typing import Any

import pytest

from strandline_spark.formats.jdbc.datasets import is_table
from strandline_spark.formats.kafka import FORMAT as KAFKA
from strandline_spark.formats.mention import Mention

JVM: Any = None  # nothing is asked of it
SERVERS = {"kafka.bootstrap.servers": "broker:9092"}


def test_kafka_write_whose_rows_carry_their_topics_is_not_silent() -> None:
    with pytest.raises(LookupError, match="named by its rows"):
        KAFKA.dataset_of(Mention(provider="KafkaSourceProvider", options=SERVERS), JVM)


def test_kafka_write_with_a_topic_names_it() -> None:
    named = Mention(provider="KafkaSourceProvider", options={**SERVERS, "topic": "orders"})

    dataset = KAFKA.dataset_of(named, JVM)

    assert dataset is not None
    assert (dataset.namespace, dataset.name) == ("kafka://broker:9092", "orders")


def test_stream_that_has_no_offsets_yet_waits_for_its_topics() -> None:
    pattern = {**SERVERS, "subscribePattern": "orders.*"}
    stream = Mention(provider="kafka", options=pattern, offsets=(None, None))

    assert KAFKA.dataset_of(stream, JVM) is None


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("orders", True),
        (" main.orders ", True),
        ('"Two words".orders', True),
        ("[dbo].[orders]", True),
        ("`shop`.`orders`", True),
        ("orders o", False),
        ("orders AS o", False),
        ("users u JOIN orders o ON u.id = o.user_id", False),
        ("(SELECT 1) t", False),
        ("SELECT id FROM users", False),
    ],
)
def test_name_of_a_table_is_told_from_a_from_clause(text: str, table: bool) -> None:
    assert is_table(text) is table
