"""Parsers of settings.

Each function gives the value, or a ValueError with the end of the sentence
"STRANDLINE_NAME=text ...": why not, and what is allowed. It repeats nothing of the text, which may
hold a password.
"""

import ipaddress
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

ADDRESSES = "sqlite:////data/strandline.db or postgresql://user:password@host/name"
BROKER = re.compile(
    r"(?:\w+://)?(?:\[(?P<v6>[^\[\]]+)\]|[^\s:\[\]/@]+)(?::(?P<port>\d{1,5}))?", re.ASCII
)
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
LAST_PORT = 65535
API_KEY = re.compile(r"[A-Za-z0-9_~+/=-]{32,200}")
# Signatures with a key pair. None is HMAC: whoever can check such a signature can forge it, and so
# can whoever reads a public key where a library takes that for the shared one.
SIGNATURES = frozenset(
    re.findall(r"\w+", "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA")
)
GRANT = re.compile(
    r"(?P<value>.+)=(?P<scopes>(?:read|ingest|admin)(?:\s*,\s*(?:read|ingest|admin))*)\s*@(?P<patterns>.+)"
)


class TokenGrant(NamedTuple):
    """The scopes and patterns of namespaces for tokens whose claim has this value."""

    value: str
    scopes: tuple[str, ...]
    patterns: tuple[str, ...]


def text(value: str) -> str:
    """Any text but an empty one."""
    if not value.strip():
        raise ValueError("is empty")
    return value.strip()


def api_key(value: str) -> str:
    """Return an API key that somebody else has made."""
    if not API_KEY.fullmatch(value.strip()):
        raise ValueError("is not 32 to 200 letters, digits and signs of _ - ~ + / =")
    return value.strip()


def switch(value: str) -> bool:
    """Return true or false, in the spellings that environments use."""
    spellings = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if value.strip().lower() not in spellings:
        raise ValueError("is neither true nor false")
    return spellings[value.strip().lower()]


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a whole number from `low` to `high`."""
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
    """Return a share above 0 and up to 1."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError("is not a number between 0 and 1") from None
    if not 0 < number <= 1:
        raise ValueError("is not a number between 0 and 1")
    return number


def one_of(*allowed: str) -> Callable[[str], str]:
    """One of a few words, in any case."""

    def parse(value: str) -> str:
        return exactly_one_of(*allowed)(value.lower())

    return parse


def exactly_one_of(*allowed: str) -> Callable[[str], str]:
    """One of a few words, in the case in which they are written."""

    def parse(value: str) -> str:
        if value.strip() not in allowed:
            raise ValueError(f"is not one of {', '.join(allowed)}")
        return value.strip()

    return parse


def web_address(value: str) -> str:
    """Return an http or https address, without the slash at its end."""
    if not value.strip().startswith(("http://", "https://")):
        raise ValueError("does not start with http:// or https://")
    if not _has_host(value.strip()):
        raise ValueError("has no host, or an invalid port")
    return value.strip().rstrip("/")


def webhooks(value: str) -> str:
    """Http or https addresses with commas, each alone or as slack=address."""
    for pattern in patterns(value):
        web_address(pattern.removeprefix("slack="))
    return text(value)


def _has_host(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # whose words would repeat a part of it
        return False


def guarded_address(value: str) -> str:
    """Return an https address, or an http one of this machine.

    What is read from it must not be changed on the way.
    """
    address = web_address(value)
    if not _has_host(address):
        raise ValueError("is not an address with a host and a port")
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme == "http" and host != "localhost" and not _is_own(host):
        raise ValueError("is not https: keys could be replaced on the way")
    return address


def _is_own(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def signatures(value: str) -> tuple[str, ...]:
    """Algorithms of signatures with commas, in the spelling of RFC 7518."""
    names = patterns(value)
    if not names or not SIGNATURES.issuperset(names):
        raise ValueError(
            f"is not a list of {', '.join(sorted(SIGNATURES))} (none and HS256 prove nothing)"
        )
    return names


def token_grants(value: str) -> tuple[TokenGrant, ...]:
    """VALUE=SCOPE,...@PATTERN,... with semicolons between.

    >>> token_grants("analysts=read@*; cn=etl,ou=x=ingest,read@bank*,s3://bank*")[1]
    TokenGrant(value='cn=etl,ou=x', scopes=('ingest', 'read'), patterns=('bank*', 's3://bank*'))
    """
    matches = [GRANT.fullmatch(entry.strip()) for entry in value.split(";") if entry.strip()]
    granted = [
        TokenGrant(match["value"].strip(), patterns(match["scopes"]), patterns(match["patterns"]))
        for match in matches
        if match
    ]
    if not matches or not all(matches) or not all(grant.patterns for grant in granted):
        raise ValueError("is not VALUE=SCOPE,...@PATTERN,...; with scopes read, ingest and admin")
    return tuple(granted)


def event_address(value: str) -> str:
    """Return a destination of events: http(s)://..., kafka://brokers/topic, or file:///path."""
    scheme, _, rest = value.strip().partition("://")
    if scheme in ("http", "https") and rest:
        return web_address(value)
    if scheme == "file" and rest.startswith("/") and not rest.endswith("/"):
        return value.strip()
    servers, _, topic = rest.partition("/")
    if scheme != "kafka" or not topic:
        raise ValueError(
            "is not one of http(s)://..., kafka://host:port,.../topic and file:///folder/file"
        )
    return f"kafka://{brokers(servers)}/{topic_name(topic)}"


def patterns(value: str) -> tuple[str, ...]:
    """Patterns with commas, as shells have them."""
    return tuple(pattern.strip() for pattern in value.split(",") if pattern.strip())


def networks(value: str) -> tuple[Any, ...]:
    """Networks with commas: 10.0.0.0/8, ::1/128."""
    try:
        return tuple(ipaddress.ip_network(pattern) for pattern in patterns(value))
    except ValueError:
        raise ValueError("is not a list of networks like 10.0.0.0/8,127.0.0.0/8") from None


def brokers(value: str) -> str:
    """Kafka's brokers, `host:port` with commas; a host alone means port 9092."""
    addresses = [broker.strip() for broker in value.split(",") if broker.strip()]
    if not addresses or not all(map(_is_broker, addresses)):
        raise ValueError(f"is not host:port,... with ports from 1 to {LAST_PORT}")
    return ",".join(addresses)


def _is_broker(broker: str) -> bool:
    parts = BROKER.fullmatch(broker)
    if parts is None:
        return _is_ipv6(broker)
    return (parts["v6"] is None or _is_ipv6(parts["v6"])) and 1 <= int(
        parts["port"] or 9092
    ) <= LAST_PORT


def _is_ipv6(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 6
    except ValueError:
        return False


def topic_name(value: str) -> str:
    """Return a name that Kafka takes for a topic."""
    if not TOPIC.fullmatch(value.strip()) or value.strip() in (".", ".."):
        raise ValueError(
            "is not a topic name: 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', and neither . nor .."
        )
    return value.strip()


def file_to_read(value: str) -> str:
    """Return a file that is there and can be read; a pipe is one too."""
    file = Path(value.strip())
    if not file.exists() or file.is_dir():
        raise ValueError("does not exist: name an existing file")
    if not os.access(file, os.R_OK):
        raise ValueError("cannot be read by this user: check its permissions")
    return value.strip()


def database_address(value: str) -> str:
    """Return an SQLAlchemy URL of SQLite or PostgreSQL; plain `postgresql://` means psycopg 3."""
    scheme, _, rest = value.strip().partition("://")
    kind = scheme.partition("+")[0]
    if not rest or kind not in ("sqlite", "postgresql", "postgres"):
        raise ValueError(f"is not an address like {ADDRESSES}")
    address = f"sqlite://{rest}" if kind == "sqlite" else f"postgresql+psycopg://{rest}"
    if why := _why_unusable(address):
        raise ValueError(f"is not an address like {ADDRESSES}: {why}")
    return address


def _why_unusable(address: str) -> str | None:
    """Return the fault of an address, without any part of it.

    Where a password is not escaped, all parts are others.
    """
    from sqlalchemy.engine import make_url  # a quarter of a second, which `--help` has no use for
    from sqlalchemy.exc import ArgumentError

    sqlite = address.startswith("sqlite")
    try:
        url = make_url(address)
        url.get_dialect()().create_connect_args(url)
    except ValueError:
        url = None
    except ArgumentError:
        return (
            "a file's address begins with sqlite:///"
            if sqlite
            else "its parts cannot be told apart"
        )
    if url is None or (url.port is not None and not 1 <= url.port <= LAST_PORT):
        return (
            f"its port is not a number from 1 to {LAST_PORT} (in a password, @ : "
            "/ are written %40 %3A %2F)"
        )
    return None
