"""Recorded Spark events with Kafka and a database: sources match the statements.

Of its streams no event says what those of a topic write: the answer must not say that either.
"""

import pytest
from sqlalchemy import Engine

from store.recordings.conftest import RecordedEngine
from strandline.core.walk import Direction
from strandline.store.lineage.table_lineage import lineage_of
from worlds.recorded import ORDERS, question, truth_of
from worlds.scenarios.taking import reader
from worlds.stock_recorded import called

TRUTH = truth_of("outside")
TOPIC = "dataset:kafka://broker:9092:{}"


@pytest.fixture(params=ORDERS)
def ran(recorded_engine: RecordedEngine, request: pytest.FixtureRequest) -> Engine:
    """Give a store that has taken the recording."""
    return recorded_engine("outside", *request.param)


def short(node: dict[str, str]) -> str:
    """A table of the lake as database.table, what is outside by its name there."""
    return called(node) if node["namespace"] == "file" else node["name"]


def test_each_table_and_topic_is_made_from_what_its_statements_read(ran: Engine) -> None:
    with reader(ran) as connection:
        for name, sources in TRUTH["sources"].items():
            node = TOPIC.format(name) if name == "alerts" else name
            answer = lineage_of(connection, question(connection, node))
            found = {short(one) for one in answer["nodes"] if one["type"] == "dataset"} - {name}
            assert found == set(sources) - set(TRUTH["unreported"].get(name, ())), name


def test_topic_lists_its_readers(ran: Engine) -> None:
    with reader(ran) as connection:
        for topic, readers in TRUTH["readers"].items():
            answer = lineage_of(
                connection, question(connection, TOPIC.format(topic), Direction.DOWNSTREAM)
            )
            assert {one["name"] for one in answer["nodes"] if one["type"] == "job"} == set(readers)
