"""Settings: sources, precedence, and reporting all faults together."""

from pathlib import Path

import pytest

from strandline.errors import SettingsError
from strandline.settings import (
    KAFKA_MECHANISMS,
    KAFKA_SECURITY,
    Settings,
    faulty_files,
    read_dotenv,
    read_settings,
    read_what_can_be_read,
)


def test_all_faults_are_reported_together() -> None:
    environ = {
        "STRANDLINE_PORT": "70000",
        "STRANDLINE_HOST": "0.0.0.0",
        "STRANDLINE_AUTH": "off",
        "STRANDLINE_DATABASE_URL": "mysql://me:secret@db/x",
        "STRANDLINE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    }

    with pytest.raises(SettingsError) as raised:
        read_settings(environ)

    assert raised.value.faults == (
        (
            "STRANDLINE_DATABASE_URL (--database-url) is not an address like sqlite:////data/strandline.db "
            "or postgresql://user:password@host/name"
        ),
        "STRANDLINE_PORT=70000 (--port) is not a whole number from 0 to 65535",
        "STRANDLINE_AUTH=off (--auth) is allowed on loopback only, and STRANDLINE_HOST=0.0.0.0 (--host) is not",
        "STRANDLINE_KAFKA_SASL_MECHANISM is missing, and STRANDLINE_KAFKA_SECURITY_PROTOCOL needs it",
    )


ADDRESS = (
    "is not an address like sqlite:////data/strandline.db or postgresql://user:password@host/name"
)
NO_PORT = "its port is not a number from 1 to 65535 (in a password, @ : / are written %40 %3A %2F)"
NO_BROKERS = "is not host:port,... with ports from 1 to 65535"
NO_TOPIC = "is not a topic name: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', and neither . nor .."


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("KAFKA_BOOTSTRAP_SERVERS", "localhost:abc", NO_BROKERS),
        ("KAFKA_BOOTSTRAP_SERVERS", "a:9092,b:70000", NO_BROKERS),
        ("KAFKA_BOOTSTRAP_SERVERS", ":9092", NO_BROKERS),
        ("KAFKA_BOOTSTRAP_SERVERS", "[::1:9092", NO_BROKERS),
        ("KAFKA_BOOTSTRAP_SERVERS", ",", NO_BROKERS),
        ("KAFKA_TOPIC", "bad topic!", NO_TOPIC),
        ("KAFKA_TOPIC", "..", NO_TOPIC),
        ("KAFKA_TOPIC", "x" * 250, NO_TOPIC),
        ("RETENTION_DAYS", "99999999999", "is not a whole number from 1 to 36500"),
    ],
)
def test_values_outside_kafka_or_calendar_limits_are_faults(
    name: str, value: str, why: str
) -> None:
    assert read_what_can_be_read({f"STRANDLINE_{name}": value}).faults == (
        f"STRANDLINE_{name}={value} (--{name.lower().replace('_', '-')}) {why}",
    )


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://me:hunter2@db:abc/x", NO_PORT),
        ("postgresql://me:hunter2@db:70000/x", NO_PORT),
        ("postgresql://me:hunter2/9@db/x:y", None),
        ("postgresql://me:hunter2@/x?port=abc", "its parts cannot be told apart"),
        ("sqlite://data/hunter2.db", "a file's address begins with sqlite:///"),
    ],
)
def test_invalid_database_address_is_reported_without_its_password(
    url: str, why: str | None
) -> None:
    faults = read_what_can_be_read({"STRANDLINE_DATABASE_URL": url}).faults

    assert faults == (
        () if why is None else (f"STRANDLINE_DATABASE_URL (--database-url) {ADDRESS}: {why}",)
    )


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("a:9092, b:9093,", "a:9092,b:9093"),
        ("kafka-1.example.org", "kafka-1.example.org"),
        ("[::1]:9092,::1,127.0.0.1:1", "[::1]:9092,::1,127.0.0.1:1"),
        ("SASL_SSL://a:9092", "SASL_SSL://a:9092"),
    ],
)
def test_broker_addresses_are_passed_on_as_kafka_python_accepts_them(
    given: str, taken: str
) -> None:
    assert (
        read_settings({"STRANDLINE_KAFKA_BOOTSTRAP_SERVERS": given}).kafka_bootstrap_servers
        == taken
    )


def test_invalid_kafka_security_settings_are_faults(tmp_path: Path) -> None:
    settings = read_what_can_be_read(
        {
            "STRANDLINE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "STRANDLINE_KAFKA_SASL_MECHANISM": "FOO",
            "STRANDLINE_KAFKA_SSL_CAFILE": f"{tmp_path}/ca.pem",
            "STRANDLINE_KAFKA_SSL_KEYFILE": f"{tmp_path}",
        }
    )

    assert settings.faults == (
        f"STRANDLINE_KAFKA_SASL_MECHANISM=FOO is not one of {', '.join(KAFKA_MECHANISMS)}",
    )
    assert faulty_files(settings) == [
        f"STRANDLINE_KAFKA_SSL_CAFILE={tmp_path}/ca.pem does not exist: name an existing file",
        f"STRANDLINE_KAFKA_SSL_KEYFILE={tmp_path} does not exist: name an existing file",
    ]


def test_flags_win_over_the_environment() -> None:
    settings = read_settings(
        {"STRANDLINE_PORT": "6000", "STRANDLINE_HOST": "::1"}, {"port": "7000"}
    )

    assert (settings.port, settings.host) == (7000, "::1")


def test_an_empty_variable_is_unset() -> None:
    assert read_settings({"STRANDLINE_PORT": ""}).port == 5000


def test_secrets_appear_in_no_message_or_repr() -> None:
    settings = read_settings(
        {
            "STRANDLINE_DATABASE_URL": "postgresql://me:hunter2@db/x",
            "STRANDLINE_DATAHUB_TOKEN": "hunter2",
        }
    )

    assert "hunter2" not in repr(settings)


def test_postgresql_means_psycopg() -> None:
    settings = read_settings({"STRANDLINE_DATABASE_URL": "postgres://me@db/x"})

    assert settings.database_url == "postgresql+psycopg://me@db/x"


def test_kafka_settings_keep_the_names_that_kafka_python_has() -> None:
    environ = {
        "STRANDLINE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "STRANDLINE_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "STRANDLINE_KAFKA_SASL_PLAIN_USERNAME": "me",
        "STRANDLINE_KAFKA_SSL_CHECK_HOSTNAME": "false",
    }

    assert read_settings(environ).kafka_security == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "ssl_check_hostname": False,
    }


def test_kafka_python_accepts_every_kafka_setting() -> None:
    from kafka import KafkaConsumer
    from kafka.net.sasl import SASL_MECHANISMS

    assert set(KAFKA_SECURITY) - set(KafkaConsumer.DEFAULT_CONFIG) == set()
    assert set(KAFKA_MECHANISMS) == set(SASL_MECHANISMS)


@pytest.mark.parametrize(
    ("host", "auth", "required"),
    [
        ("127.0.0.1", "auto", False),
        ("::1", "auto", False),
        ("localhost", "auto", False),
        ("0.0.0.0", "auto", True),
        ("10.1.2.3", "auto", True),
        ("127.0.0.1", "required", True),
        ("127.0.0.1", "off", False),
    ],
)
def test_keys_are_required_on_reachable_addresses(host: str, auth: str, required: bool) -> None:
    assert Settings(host=host, auth=auth).auth_required is required


def test_lenient_reading_replaces_invalid_settings_with_defaults() -> None:
    settings = read_what_can_be_read({"STRANDLINE_PORT": "x", "STRANDLINE_HOST": "::1"})

    assert (settings.port, settings.host) == (5000, "::1")
    assert settings.faults == ("STRANDLINE_PORT=x (--port) is not a whole number from 0 to 65535",)


def test_a_dotenv_file_may_have_comments_quotes_and_export(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text(
        "# a comment\nexport STRANDLINE_PORT='6000'\n\nSTRANDLINE_HOST = \"::1\"\nnonsense\n"
    )
    with file.open("a") as added:
        added.write("STRANDLINE_PUBLIC_URL='it\"\nSTRANDLINE_OIDC_AUDIENCE=secret'\n")

    assert read_dotenv(file) == {
        "STRANDLINE_PORT": "6000",
        "STRANDLINE_HOST": "::1",
        "STRANDLINE_PUBLIC_URL": "'it\"",
        "STRANDLINE_OIDC_AUDIENCE": "secret'",
    }
    assert read_dotenv(tmp_path / "none") == {}
