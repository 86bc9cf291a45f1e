"""Which Kafka client the consumer uses: confluent-kafka where it is installed, kafka-python everywhere else."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from kafka import KafkaConsumer

from strandline.errors import SettingsError
from strandline.settings import PREFIX, Settings

MECHANISMS = (None, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")  # what confluent-kafka's wheels can do alone


def client_name(settings: Settings) -> str:
    """`kafka-python` or `confluent`; a SettingsError where the one that is asked for cannot be used."""
    if settings.kafka_client == "kafka-python":
        return "kafka-python"
    faults = _faults_of_confluent(settings.kafka_security)
    if faults and settings.kafka_client == "confluent":
        raise SettingsError([f"{PREFIX}KAFKA_CLIENT=confluent: {fault}" for fault in faults])
    return "kafka-python" if faults else "confluent"


def _faults_of_confluent(security: Mapping[str, Any]) -> list[str]:
    """Why confluent-kafka cannot be used here."""
    faults = []
    if not _is_installed():
        faults.append("it is not installed: pip install 'strandline[fast]'")
    if (mechanism := security.get("sasl_mechanism")) not in MECHANISMS:
        faults.append(f"it cannot do {mechanism}: take kafka-python")
    return faults


def _is_installed() -> bool:
    try:
        return find_spec("confluent_kafka") is not None
    except ValueError:  # somebody keeps it from being imported
        return False


def client_of(settings: Settings) -> Any:
    """A new consumer that has reached a broker: kafka-python's, or one with the same methods; else a KafkaError."""
    if client_name(settings) == "kafka-python":
        return KafkaConsumer(**consumer_arguments(settings))
    from strandline.transports.confluent import ConfluentConsumer  # is not there where the extra is not

    return ConfluentConsumer(settings)


def consumer_arguments(settings: Settings) -> dict[str, Any]:
    """kafka-python's arguments. Fetches are small enough to bound memory; a larger single record still comes."""
    return {
        "bootstrap_servers": (settings.kafka_bootstrap_servers or "").split(","),
        "group_id": settings.kafka_group,
        "client_id": "strandline",
        "bootstrap_timeout_ms": 10_000,  # then it is logged, and tried again
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",  # what a producer took back was never sent
        "session_timeout_ms": settings.kafka_session_seconds * 1000,
        "heartbeat_interval_ms": min(3000, settings.kafka_session_seconds * 250),
        "max_partition_fetch_bytes": 4 * 1024 * 1024,
        "fetch_max_bytes": 16 * 1024 * 1024,
        **settings.kafka_security,
    }
