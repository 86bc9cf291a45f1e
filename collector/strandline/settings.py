"""One frozen object with everything that can be set, read from flags, environment and `.env`, in that order of rank.

A setting `port` is STRANDLINE_PORT in the environment and `--port` on the command line. Reading never stops at the first
fault: a SettingsError names all of them. Secrets are never repeated in a message.
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

PREFIX = "STRANDLINE_"
KAFKA_SECURITY = (
    *("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password"),
    *("sasl_kerberos_name", "sasl_kerberos_service_name", "sasl_kerberos_domain_name"),
    *("ssl_check_hostname", "ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_crlfile", "ssl_ciphers"),
)


def text(value: str) -> str:
    """Any text but an empty one."""
    if not value.strip():
        raise ValueError("is empty")
    return value.strip()


def switch(value: str) -> bool:
    """true or false, in the spellings that environments use."""
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if value.strip().lower() not in known:
        raise ValueError("is neither true nor false")
    return known[value.strip().lower()]


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """A whole number from `low` to `high`."""
    span = f"from {low} to {high}" if high is not None else f"of {low} or more"

    def parse(value: str) -> int:
        try:
            number = int(value)
        except ValueError:
            raise ValueError(f"is not a whole number {span}") from None
        if number < low or (high is not None and number > high):
            raise ValueError(f"is not a whole number {span}")
        return number

    return parse


def share(value: str) -> float:
    """A share above 0 and up to 1."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError("is not a share between 0 and 1") from None
    if not 0 < number <= 1:
        raise ValueError("is not a share between 0 and 1")
    return number


def one_of(*allowed: str) -> Callable[[str], str]:
    """One of a few words."""

    def parse(value: str) -> str:
        if value.strip().lower() not in allowed:
            raise ValueError(f"is not one of {', '.join(allowed)}")
        return value.strip().lower()

    return parse


def web_address(value: str) -> str:
    """An http or https address, without the slash at its end."""
    if not value.strip().startswith(("http://", "https://")):
        raise ValueError("does not start with http:// or https://")
    return value.strip().rstrip("/")


def database_address(value: str) -> str:
    """An SQLAlchemy URL of SQLite or PostgreSQL; plain `postgresql://` means psycopg 3."""
    scheme, _, rest = value.strip().partition("://")
    kind = scheme.partition("+")[0]
    if not rest or kind not in ("sqlite", "postgresql", "postgres"):
        raise ValueError("is not an address like sqlite:////data/strandline.db or postgresql://user:password@host/name")
    return f"sqlite://{rest}" if kind == "sqlite" else f"postgresql+psycopg://{rest}"


def default_database() -> str:
    """The embedded database in the user's data folder."""
    return f"sqlite:///{Path(platformdirs.user_data_dir('strandline')) / 'strandline.db'}"


def setting(parse: Callable[[str], object], default: Any, about: str, *, secret: bool = False) -> Any:
    """Declare a field: how its text is read, what it is when unset (a value, or a function), and what it is for."""
    about_it = {"parse": parse, "about": about, "secret": secret}
    if callable(default):
        return field(default_factory=default, repr=not secret, metadata=about_it)
    return field(default=default, repr=not secret, metadata=about_it)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set. `Settings()` is the embedded collector on this machine."""

    database_url: str = setting(
        database_address, default_database, "SQLite in your data folder, or postgresql://...", secret=True
    )
    kafka_bootstrap_servers: str | None = setting(text, None, "host:port,...; unset: no consumer")
    kafka_topic: str = setting(text, "openlineage.events", "the topic with OpenLineage events")
    kafka_group: str = setting(text, "strandline", "the consumer group that shares the topic's partitions")
    kafka_session_seconds: int = setting(whole(1, 1800), 10, "silence after which the group gives partitions to others")
    kafka_security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    host: str = setting(text, "127.0.0.1", "the address to listen on")
    port: int = setting(whole(0, 65535), 5000, "the port to listen on")
    auth: str = setting(one_of("auto", "off", "required"), "auto", "API keys: auto is off on loopback only")
    max_body_bytes: int = setting(whole(1024), 32 * 1024 * 1024 + 65536, "largest request, after decompression too")
    body_seconds: int = setting(whole(1, 3600), 60, "how long a request's body may take to arrive")
    max_waiting: int = setting(whole(1), 2000, "requests that may wait for the writer before 503")
    max_waiting_bytes: int = setting(whole(1024), 64 * 1024 * 1024, "bytes of events that may wait before 503")
    memory_bytes: int = setting(whole(64 * 1024 * 1024), 512 * 1024 * 1024, "memory at which readiness turns false")
    batch_records: int = setting(whole(1, 10_000), 2000, "records of one transaction")
    max_dead_in_row: int = setting(whole(1), 1000, "dead letters in a row that stop the consumer")
    max_dead_share: float = setting(share, 0.5, "share of dead letters in the last 10,000 records that stops it")
    lease_seconds: int = setting(whole(1), 300, "a reader's claim on a version, when it asks for none")
    silent_seconds: int = setting(whole(1), 86_400, "silence after which a run without a lease is LOST")
    resume_seconds: int = setting(whole(1), 86_400, "how long a stopped job keeps its place")
    barrier_seconds: int = setting(whole(1), 10, "interval of the barriers of domains with several roots")
    barrier_timeout_seconds: int | None = setting(
        whole(1), None, "age at which a barrier that not all completed is given up; unset: never"
    )
    keep_barriers: int = setting(whole(1, 100), 10, "barriers of each table that are kept for rollback")
    alert_targets: str | None = setting(
        text, None, "webhooks for alerts: addresses, or slack=address, with commas", secret=True
    )
    alert_staleness_seconds: int | None = setting(whole(1), None, "age of the first missing barrier that is an alert")
    alert_seconds: int = setting(whole(1), 10, "how often alerts are looked for")
    retention_days: int | None = setting(whole(1), None, "age at which events and history go; unset: never")
    marquez_url: str | None = setting(web_address, None, "a Marquez to export to or import from")
    marquez_token: str | None = setting(text, None, "its API key", secret=True)
    datahub_url: str | None = setting(web_address, None, "a DataHub to export to")
    datahub_token: str | None = setting(text, None, "its access token", secret=True)
    metrics_port: int | None = setting(whole(1, 65535), None, "a port for the metrics of `strandline consume`")
    log_format: str = setting(one_of("console", "json"), "console", "console or json")
    log_level: str = setting(one_of("debug", "info", "warning", "error"), "info", "debug, info, warning or error")
    unknown: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def auth_required(self) -> bool:
        """Whether requests need an API key."""
        return self.auth == "required" or (self.auth == "auto" and not is_loopback(self.host))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens on `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def declared() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, how it was declared) of every setting that has one text, in order; `default` None: unset or computed."""
    for one in fields(Settings):
        if "parse" in one.metadata:
            default = None if one.default is MISSING else one.default
            yield one.name, types.MappingProxyType({**one.metadata, "default": default})


def read_dotenv(path: Path) -> dict[str, str]:
    """Settings from a `.env` file: NAME=value lines, `export` and quotes allowed; a missing file has none."""
    if not path.is_file():
        return {}
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, sign, value = line.strip().removeprefix("export ").partition("=")
        if sign and not name.lstrip().startswith("#"):
            found[name.strip()] = value.strip().strip("'\"")
    return found


def read_settings(environ: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Settings:
    """The settings of `environ` and `flags` (by field name; they win), or a SettingsError with every fault."""
    settings = read_what_can_be_read(environ, flags)
    if settings.faults:
        raise SettingsError(settings.faults)
    return settings


def read_what_can_be_read(environ: Mapping[str, str], flags: Mapping[str, str] | None = None) -> Settings:
    """The same with the faults told inside and defaults in their places: for whoever looks for more faults."""
    given = {name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)}
    given |= flags or {}
    faults: list[str] = []
    values: dict[str, Any] = {}
    for name, how in declared():
        if given.get(name, "") != "":
            values |= _parsed(name, given[name], how, faults)
    values["kafka_security"] = _kafka_security(given, faults)
    settings = Settings(**values, unknown=tuple(_unknown(given)))
    return replace(settings, faults=(*faults, *_contradictions(settings)))


def _parsed(name: str, value: str, how: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    try:
        return {name: how["parse"](value)}
    except ValueError as error:
        shown = "" if how["secret"] else f"={value}"
        faults.append(f"{PREFIX}{name.upper()}{shown} {error}")
        return {}


def _kafka_security(given: Mapping[str, str], faults: list[str]) -> dict[str, Any]:
    """kafka-python's own arguments, for those that were given."""
    found: dict[str, Any] = {}
    for name in KAFKA_SECURITY:
        if given.get(f"kafka_{name}", "") == "":
            continue
        parse = switch if name == "ssl_check_hostname" else text
        how = {"parse": parse, "secret": "password" in name}
        for value in _parsed(f"kafka_{name}", given[f"kafka_{name}"], how, faults).values():
            found[name] = value
    protocol = found.get("security_protocol", "PLAINTEXT")
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        faults.append(
            f"{PREFIX}KAFKA_SECURITY_PROTOCOL={protocol} is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
        )
    return found


def _contradictions(settings: Settings) -> list[str]:
    found = []
    if settings.auth == "off" and not is_loopback(settings.host):
        found.append(f"{PREFIX}AUTH=off is allowed on loopback only, and {PREFIX}HOST={settings.host} is not")
    if settings.max_waiting_bytes < settings.max_body_bytes:
        found.append(f"{PREFIX}MAX_WAITING_BYTES is less than {PREFIX}MAX_BODY_BYTES: one request must fit")
    security = settings.kafka_security
    if str(security.get("security_protocol", "")).startswith("SASL") and "sasl_mechanism" not in security:
        found.append(f"{PREFIX}KAFKA_SASL_MECHANISM is missing, and {PREFIX}KAFKA_SECURITY_PROTOCOL needs it")
    if "sasl_mechanism" in security and not str(security.get("security_protocol", "")).startswith("SASL"):
        found.append(f"{PREFIX}KAFKA_SASL_MECHANISM is set, but {PREFIX}KAFKA_SECURITY_PROTOCOL is not SASL_...")
    return found


def _unknown(given: Mapping[str, str]) -> Iterator[str]:
    """Settings that nothing reads, with the likely meaning: told as a warning, for another version may know them."""
    names = [name for name, _ in declared()] + [f"kafka_{name}" for name in KAFKA_SECURITY]
    for name in sorted(set(given) - set(names)):
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; is {PREFIX}{near[0].upper()} meant?" if near else ""
        yield f"{PREFIX}{name.upper()} is not a setting{hint}"
