"""One frozen object with all settings, read from flags, environment and `.env`.

Flags win over the environment, and that over `.env`. A setting `port` is STRANDLINE_PORT in the
environment and `--port` on the command line. Reading never stops at the first fault: a
SettingsError names all of them. Secrets are never repeated in a message.
"""

import difflib
import ipaddress
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import platformdirs

from strandline.errors import SettingsError
from strandline.setting_parsers import (
    TokenGrant,
    api_key,
    brokers,
    database_address,
    event_address,
    exactly_one_of,
    file_to_read,
    guarded_address,
    networks,
    one_of,
    patterns,
    share,
    signatures,
    switch,
    text,
    token_grants,
    topic_name,
    web_address,
    webhooks,
    whole,
)

PREFIX = "STRANDLINE_"
KAFKA_SECURITY = (
    *("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password"),
    *("sasl_kerberos_name", "sasl_kerberos_service_name", "sasl_kerberos_domain_name"),
    *(
        "ssl_check_hostname",
        "ssl_cafile",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_password",
        "ssl_crlfile",
        "ssl_ciphers",
    ),
)
KAFKA_MECHANISMS = (
    "PLAIN",
    "GSSAPI",
    "OAUTHBEARER",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "AWS_MSK_IAM",
)
KAFKA_TEXTS: Mapping[str, Callable[[str], object]] = {
    "security_protocol": exactly_one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "sasl_mechanism": exactly_one_of(*KAFKA_MECHANISMS),
    "ssl_check_hostname": switch,
}
KAFKA_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile")
TARGETS = (
    "marquez",
    "datahub",
    "openmetadata",
    "openlineage",
)  # each with _URL, _TOKEN, _TOKEN_FILE and _NAMESPACES
RETENTION_DAYS = 36_500  # a date so many days ago is still one


def default_database() -> str:
    """Return the embedded database in the user's data folder."""
    return f"sqlite:///{Path(platformdirs.user_data_dir('strandline')) / 'strandline.db'}"


def setting(
    parse: Callable[[str], object], default: Any, about: str, *, secret: bool = False
) -> Any:
    """Declare a field: how its text is read, its default, and what it is for.

    The default is a value or a function.
    """
    about_it = {"parse": parse, "about": about, "secret": secret}
    if callable(default):
        return field(default_factory=default, repr=not secret, metadata=about_it)
    return field(default=default, repr=not secret, metadata=about_it)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set. `Settings()` is the embedded collector on this machine."""

    database_url: str = setting(
        database_address,
        default_database,
        "SQLite in your data folder, or postgresql://...",
        secret=True,
    )
    database_wait_seconds: int = setting(
        whole(0, 86_400), 60, "how long a server that starts waits for a database that is not up"
    )
    kafka_bootstrap_servers: str | None = setting(
        brokers, None, "host:port,...; unset: no consumer"
    )
    kafka_topic: str = setting(
        topic_name, "openlineage.events", "the topic with OpenLineage events"
    )
    kafka_group: str = setting(
        text, "strandline", "the consumer group that shares the topic's partitions"
    )
    kafka_session_seconds: int = setting(
        whole(1, 1800), 10, "silence after which the group gives partitions to others"
    )
    kafka_security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    host: str = setting(text, "127.0.0.1", "the address to listen on")
    port: int = setting(whole(0, 65535), 5000, "the port to listen on")
    auth: str = setting(
        one_of("auto", "off", "required"), "auto", "API keys: auto is off on loopback only"
    )
    oidc_issuer: str | None = setting(
        text,
        None,
        "the issuer (iss) whose tokens (JWT) are taken beside API keys; with one, "
        "auto is required everywhere",
    )
    oidc_audience: tuple[str, ...] = setting(
        patterns, tuple, "audiences (aud), with commas, of which a token names one"
    )
    oidc_algorithms: tuple[str, ...] = setting(
        signatures, lambda: ("RS256",), "signatures that are taken, with commas; unset: RS256"
    )
    oidc_jwks_url: str | None = setting(
        guarded_address, None, "where the issuer publishes its keys (JWKS), over https"
    )
    oidc_jwks_file: str | None = setting(
        text, None, "a file with them instead, where the issuer cannot be asked"
    )
    oidc_skew_seconds: int = setting(
        whole(0, 300), 30, "how far the issuer's clock may be from this one"
    )
    oidc_claim: str = setting(
        text, "groups", "the claim that grants are made for; a.b is b within a"
    )
    oidc_grants: tuple[TokenGrant, ...] = setting(
        token_grants,
        tuple,
        "what its values are granted: VALUE=SCOPE,...@PATTERN,... with semicolons between",
    )
    admin_key: str | None = setting(
        api_key,
        None,
        "the first admin key: a server stores it when it starts and no admin key is valid",
        secret=True,
    )
    admin_key_file: str | None = setting(
        text,
        None,
        "a file that holds it, unless it is set; one that is missing is made, with a new key",
    )
    allowed_hosts: tuple[str, ...] = setting(
        patterns,
        tuple,
        "names that requests may be sent to; on loopback besides its own, elsewhere any if unset",
    )
    trusted_proxies: tuple[Any, ...] = setting(
        networks,
        tuple,
        "networks of proxies whose X-Forwarded-For says where a request comes from, with commas",
    )
    head_seconds: int = setting(
        whole(1, 3600), 10, "how long a request's line and headers may take to arrive"
    )
    max_connections_per_address: int = setting(
        whole(0), 1000, "open connections of one address; 0: any number"
    )
    max_reads_per_second: int = setting(
        whole(0), 0, "questions of one key, over ten seconds; more get 429; 0: any number"
    )
    max_ingests_per_second: int = setting(
        whole(0),
        0,
        "requests with events of one key, over ten seconds; more get 503; 0: any number",
    )
    max_changes_per_second: int = setting(
        whole(0),
        0,
        "requests of one key that need admin, over ten seconds; more get 429; 0: any number",
    )
    question_seconds: int = setting(
        whole(1, 3600), 20, "how long a question may run, and wait for its turn, before 503"
    )
    max_body_bytes: int = setting(
        whole(1024), 32 * 1024 * 1024 + 65536, "largest request, after decompression too"
    )
    body_seconds: int = setting(whole(1, 3600), 60, "how long a request's body may take to arrive")
    max_waiting: int = setting(whole(1), 2000, "requests that may wait for the writer before 503")
    max_waiting_bytes: int = setting(
        whole(1024), 64 * 1024 * 1024, "bytes of events that may wait before 503"
    )
    memory_bytes: int = setting(
        whole(64 * 1024 * 1024),
        512 * 1024 * 1024,
        "memory of which nine tenths turn readiness false",
    )
    batch_records: int = setting(whole(1, 10_000), 2000, "records of one transaction")
    max_dead_in_row: int = setting(whole(1), 1000, "dead letters in a row that stop the consumer")
    max_dead_share: float = setting(
        share, 0.5, "share of dead letters in the last 10,000 records that stops it"
    )
    lease_seconds: int = setting(
        whole(1), 300, "a reader's lease on a version, when it names no time"
    )
    silent_seconds: int = setting(
        whole(1), 86_400, "silence after which a run that announced no heartbeat timeout is LOST"
    )
    recent_runs: int = setting(
        whole(0, 1000),
        10,
        "runs of a job that count as recent, besides all of its latest application",
    )
    graph_bytes: int = setting(
        whole(0),
        128 * 1024 * 1024,
        "memory of the jobs that a server keeps for its answers about lineage; 0: it keeps none",
    )
    resume_seconds: int = setting(whole(1), 604_800, "how long a stopped job stays a member")
    barrier_seconds: int = setting(
        whole(1), 10, "interval of the barriers of groups with several base tables"
    )
    barrier_timeout_seconds: int | None = setting(
        whole(1),
        None,
        "age at which a barrier that not all tables completed is overdue; unset: never",
    )
    keep_barriers: int = setting(
        whole(1, 100), 10, "barriers of each table that are kept for rollback"
    )
    alert_targets: str | None = setting(
        webhooks, None, "webhooks for alerts: addresses, or slack=address, with commas", secret=True
    )
    alert_staleness_seconds: int | None = setting(
        whole(1), None, "age of the first missing barrier that is an alert"
    )
    alert_seconds: int = setting(whole(1), 10, "how often alerts are checked")
    public_url: str | None = setting(
        web_address, None, "address at which people open the page, for links in alerts"
    )
    label: str | None = setting(text, None, "what this collector is, for its page: a test, a demo")
    retention_days: int | None = setting(
        whole(1, RETENTION_DAYS), None, "age at which events and history go; unset: never"
    )
    url: str | None = setting(
        web_address, None, "a running collector that commands ask instead of the database"
    )
    key: str | None = setting(
        text, None, "the API key of commands that ask a running collector", secret=True
    )
    key_file: str | None = setting(
        text, None, "a file that holds this key, which no list of processes shows"
    )
    marquez_url: str | None = setting(web_address, None, "a Marquez to export to or import from")
    marquez_token: str | None = setting(text, None, "its API key", secret=True)
    marquez_token_file: str | None = setting(text, None, "a file that holds it")
    marquez_namespaces: tuple[str, ...] = setting(
        patterns,
        tuple,
        "namespaces of jobs that it gets: patterns with commas, ! before those that it does not",
    )
    marquez_on_end: str = setting(
        one_of("keep", "clear", "delete"),
        "keep",
        "edges of a job that has ended: keep, clear, or delete the job",
    )
    datahub_url: str | None = setting(web_address, None, "a DataHub to export to")
    datahub_token: str | None = setting(text, None, "its access token", secret=True)
    datahub_token_file: str | None = setting(text, None, "a file that holds it")
    datahub_namespaces: tuple[str, ...] = setting(
        patterns, tuple, "namespaces of jobs that it gets"
    )
    datahub_on_end: str = setting(
        one_of("keep", "clear_edges", "soft_delete"),
        "keep",
        "a job that has ended: keep, clear_edges or soft_delete",
    )
    datahub_env: str | None = setting(
        text, None, "the environment in its urns; unset: PROD, and flows in their namespace"
    )
    datahub_platform_instance: str | None = setting(text, None, "the platform instance in its urns")
    datahub_mapping_file: str | None = setting(
        text, None, "a TOML file of rules for its urns (docs/how-to/export.md)"
    )
    datahub_orchestrator: str | None = setting(
        text, None, "the orchestrator in its urns; unset: what the events say"
    )
    datahub_schemas: bool = setting(switch, False, "whether it gets the columns of tables too")
    openmetadata_url: str | None = setting(
        event_address, None, "an OpenMetadata, or kafka://host:port/topic of its connector"
    )
    openmetadata_token: str | None = setting(text, None, "its token", secret=True)
    openmetadata_token_file: str | None = setting(text, None, "a file that holds it")
    openmetadata_namespaces: tuple[str, ...] = setting(
        patterns, tuple, "namespaces of jobs that it gets"
    )
    openlineage_url: str | None = setting(
        event_address,
        None,
        "where events are sent on: http(s)://..., kafka://host:port/topic, or file:///...",
    )
    openlineage_token: str | None = setting(text, None, "its token", secret=True)
    openlineage_token_file: str | None = setting(text, None, "a file that holds it")
    openlineage_namespaces: tuple[str, ...] = setting(
        patterns, tuple, "namespaces of jobs that it gets"
    )
    openlineage_events: str = setting(
        one_of("clean", "received"),
        "clean",
        "clean: one START and one end a run; received: as they came",
    )
    export_max_waiting: int = setting(
        whole(100), 200_000, "changes that wait for targets; beyond it they are folded"
    )
    export_networks: tuple[Any, ...] = setting(
        networks, tuple, "networks that targets may be in, with commas; unset: any"
    )
    metrics_port: int | None = setting(
        whole(1, 65535), None, "a port for /metrics alone, without an API key"
    )
    access_log: str = setting(
        one_of("off", "errors", "all"), "off", "requests in the log: off, errors (4xx, 5xx) or all"
    )
    log_format: str = setting(one_of("console", "json"), "console", "console or json")
    log_level: str = setting(
        one_of("debug", "info", "warning", "error"), "info", "debug, info, warning or error"
    )
    unknown: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def auth_required(self) -> bool:
        """True if requests need an API key."""
        protected = not is_loopback(self.host) or self.oidc_issuer is not None
        return self.auth == "required" or (self.auth == "auto" and protected)

    def client_key(self) -> str | None:
        """Return the key that commands send: as it is given, or as its file holds it."""
        if self.key or not self.key_file:
            return self.key
        try:
            return Path(self.key_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SettingsError([f"{PREFIX}KEY_FILE={self.key_file}: {error.strerror}"]) from error


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def declared() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and declaration of every setting that has one text, in order.

    A `default` of None means that the setting is unset or computed.
    """
    for setting in fields(Settings):
        if "parse" in setting.metadata:
            default = None if setting.default is MISSING else setting.default
            yield setting.name, types.MappingProxyType({**setting.metadata, "default": default})


def read_dotenv(path: Path) -> dict[str, str]:
    """Return settings from a `.env` file: NAME=value lines, `export` and quotes allowed.

    A missing file has none.
    """
    if not path.is_file():
        return {}
    values = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, sign, value = line.strip().removeprefix("export ").partition("=")
        if sign and not name.lstrip().startswith("#"):
            values[name.strip()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    """Return a value without the pair of quotes around it: a quote by itself belongs to it."""
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def read_settings(environ: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of `environ` and `flags`, or raise a SettingsError with every fault.

    Flags are keyed by field name and win over the environment.
    """
    settings = read_what_can_be_read(environ, flags)
    if settings.faults:
        raise SettingsError(settings.faults)
    return settings


def read_what_can_be_read(
    environ: Mapping[str, str], flags: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings with their faults inside and defaults in their places.

    For whoever looks for more faults.
    """
    texts = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX)
    }
    texts |= flags or {}
    faults: list[str] = []
    values: dict[str, Any] = {}
    for name, how in declared():
        if texts.get(name, "") != "":
            values |= _parsed(name, texts[name], how, faults)
    values["kafka_security"] = _kafka_security(texts, faults)
    settings = Settings(**values, unknown=tuple(_unknown(texts)))
    return replace(settings, faults=(*faults, *_contradictions(settings, texts)))


def faulty_files(settings: Settings) -> list[str]:
    """Return the faults of the files that the settings name."""
    faults: list[str] = []
    for name in KAFKA_FILES:
        if name in settings.kafka_security:
            _parsed(
                f"kafka_{name}",
                settings.kafka_security[name],
                {"parse": file_to_read, "secret": False},
                faults,
            )
    for target in TARGETS:
        if file := getattr(settings, f"{target}_token_file"):
            _parsed(f"{target}_token_file", file, {"parse": file_to_read, "secret": False}, faults)
    if settings.oidc_jwks_file:
        _parsed(
            "oidc_jwks_file",
            settings.oidc_jwks_file,
            {"parse": file_to_read, "secret": False},
            faults,
        )
    return faults


def _parsed(name: str, value: str, how: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    try:
        return {name: how["parse"](value)}
    except ValueError as error:
        shown = "" if how["secret"] else f"={value}"
        faults.append(f"{PREFIX}{name.upper()}{shown}{_flag_of(name)} {error}")
        return {}


def _flag_of(name: str) -> str:
    """Return the flag of a setting in parentheses; the security of Kafka has none."""
    has_flag = name in {declared_name for declared_name, _ in declared()}
    return f" (--{name.replace('_', '-')})" if has_flag else ""


def setting_called(name: str) -> str:
    """Return a setting as messages name it: its variable, with its flag in parentheses."""
    return f"{PREFIX}{name.upper()}{_flag_of(name)}"


def missing_setting(name: str, remedy: str) -> SettingsError:
    """Return the error of a command that cannot work without a setting."""
    return SettingsError([f"{setting_called(name)} is not set: {remedy}"])


def _kafka_security(texts: Mapping[str, str], faults: list[str]) -> dict[str, Any]:
    """kafka-python's own arguments, for those that were given."""
    security: dict[str, Any] = {}
    for name in KAFKA_SECURITY:
        if texts.get(f"kafka_{name}", "") == "":
            continue
        how = {"parse": KAFKA_TEXTS.get(name, text), "secret": "password" in name}
        for value in _parsed(f"kafka_{name}", texts[f"kafka_{name}"], how, faults).values():
            security[name] = value
    return security


def _contradictions(settings: Settings, texts: Mapping[str, str]) -> list[str]:
    faults = []
    if settings.auth == "off" and not is_loopback(settings.host):
        faults.append(
            f"{PREFIX}AUTH=off (--auth) is allowed on loopback only, and "
            f"{PREFIX}HOST={settings.host} (--host) is not"
        )
    faults += _faults_of_tokens(settings, texts)
    if settings.max_waiting_bytes < settings.max_body_bytes:
        faults.append(
            f"{setting_called('max_waiting_bytes')} is less than "
            f"{setting_called('max_body_bytes')}: one request must fit"
        )
    protocol, mechanism = (
        texts.get(f"kafka_{name}", "").strip() for name in ("security_protocol", "sasl_mechanism")
    )
    if protocol.startswith("SASL") and not mechanism:
        faults.append(
            f"{PREFIX}KAFKA_SASL_MECHANISM is missing, and {PREFIX}KAFKA_SECURITY_PROTOCOL needs it"
        )
    if mechanism and not protocol.startswith("SASL"):
        faults.append(
            f"{PREFIX}KAFKA_SASL_MECHANISM is set, "
            f"but {PREFIX}KAFKA_SECURITY_PROTOCOL is not SASL_..."
        )
    return faults


def _faults_of_tokens(settings: Settings, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the missing settings for tokens; none of them has a default that would be safe."""
    named = {name for name in texts if name.startswith("oidc_") and texts[name] != ""}
    issuer = setting_called("oidc_issuer")
    if "oidc_issuer" not in named:
        yield from (f"{setting_called(name)} is set, but {issuer} is not" for name in sorted(named))
        return
    if settings.auth == "off":
        yield f"{PREFIX}AUTH=off (--auth) takes no tokens, and {issuer} is set"
    for name in ("oidc_audience", "oidc_grants"):
        if name not in named:
            yield f"{setting_called(name)} is missing, and {issuer} needs it"
    if len(named & {"oidc_jwks_url", "oidc_jwks_file"}) != 1:
        yield (
            f"{issuer} needs one of {setting_called('oidc_jwks_url')} and "
            f"{setting_called('oidc_jwks_file')}"
        )


def _unknown(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the settings that nothing reads, with the likely meaning.

    A warning only, for another version may know them.
    """
    names = [name for name, _ in declared()] + [f"kafka_{name}" for name in KAFKA_SECURITY]
    for name in sorted(set(texts) - set(names)):
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; is {PREFIX}{near[0].upper()} meant?" if near else ""
        yield f"{PREFIX}{name.upper()} is not a setting{hint}"
