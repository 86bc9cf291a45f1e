"""Kafka topics.

The topics of a micro-batch are those of its offsets; where a batch ends is the run's to tell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.class_names import KAFKA
from strandline_spark.jvm.client import JavaObject, Jvm, class_name
from strandline_spark.model.names import of_topic
from strandline_spark.model.statement import Dataset


class Kafka(Format):
    """KafkaRelation, KafkaTable, and writes through KafkaSourceProvider."""

    name = "kafka"
    rank = 40

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The first topic."""
        topics = self._topics(mention, jvm)
        return topics[0] if topics else None

    def others_of(self, mention: Mention, jvm: Jvm) -> Sequence[Dataset]:
        """The other topics."""
        return self._topics(mention, jvm)[1:]

    def _topics(self, mention: Mention, jvm: Jvm) -> list[Dataset]:
        options = _options(mention, jvm)
        servers = options.get("kafka.bootstrap.servers") or options.get("bootstrap.servers")
        if not servers:
            return []
        named = _named(mention, options)
        if not named and mention.offsets is None:
            raise LookupError("the topics of Kafka are named by its rows, or by a pattern")
        return [Dataset(*of_topic(servers, topic), self.name, mention.schema) for topic in named]


def _options(mention: Mention, jvm: Jvm) -> dict[str, str]:
    if mention.provider is not None and mention.provider.lower().startswith("kafka"):
        return dict(mention.options)
    if mention.table is not None and _is_kafka(mention.table):
        return {key.lower(): value for key, value in mention.options.items()}
    if mention.relation is None or not _is_kafka(mention.relation):
        return {}
    return (
        _of_stream(mention, jvm)
        if mention.offsets is not None
        else _of_relation(mention.relation, jvm)
    )


def _is_kafka(instance: JavaObject) -> bool:
    return class_name(instance).startswith(KAFKA)


def _of_relation(relation: JavaObject, jvm: Jvm) -> dict[str, str]:
    options = jvm.field(relation, "sourceOptions")
    return jvm.options(options) if options is not None else {}


def _of_stream(mention: Mention, jvm: Jvm) -> dict[str, str]:
    """Spark 3.5 keeps a stream's servers with its executors' settings only."""
    settings = jvm.field(mention.relation, "executorKafkaParams")
    return jvm.mapping(settings) if settings is not None else {}


def _named(mention: Mention, options: dict[str, str]) -> list[str]:
    offsets = mention.offsets[1] if mention.offsets is not None else None
    if offsets:
        return list(json.loads(offsets))
    if options.get("topic"):
        return [options["topic"]]
    if options.get("assign"):
        return list(json.loads(options["assign"]))
    return [topic.strip() for topic in options.get("subscribe", "").split(",") if topic.strip()]


FORMAT = Kafka()
