"""Addresses: scheme, host, port and path stay.

Logins, parameters and fragments go, and so does the path of a webhook.
"""

import re

from .limits import ADDRESSES, TooManyError

# Containers, not users: abfss://container@account.dfs.core.windows.net/path
CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "viewfs")
# Where `?` is a glob's, unless a name and `=` follow it.
_FILE_SCHEMES = frozenset(
    (
        *(
            "abfs",
            "abfss",
            "adl",
            "alluxio",
            "cos",
            "cosn",
            "dbfs",
            "file",
            "gcs",
            "gs",
            "hdfs",
            "maprfs",
            "obs",
            "ofs",
            "oss",
        ),
        *("s3", "s3a", "s3n", "viewfs", "wasb", "wasbs"),
    )
)
_SCHEME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.:-")
_PARAMETERS = r"[?;](?:[^\s'\"`\\{]+|\{[^{}'\"\\]*\}|\{)*"
_REST = re.compile(rf"[^\s'\"`<>\\?;]+(?:{_PARAMETERS})?|{_PARAMETERS}")
_MORE_THAN_A_PLACE = re.compile(r"[?;@#]|:(?!\d)|hook|bot", re.IGNORECASE)
# Where an address with more than a place may be: only such are looked at closer, for a text may
# have very many others.
_MAY_BE_MORE = re.compile(
    r"://(?:[^\s'\"`<>\\?;@#:hHbB]|[hH](?![oO][oO][kK\u212a])|[bB](?![oO][tT])|:(?=\d))*"
    r"(?:[?;@#]|:(?!\d)|[hH][oO][oO][kK\u212a]|[bB][oO][tT])"
)
# A login whose password has characters that would end an address; a port has none.
_ODD_LOGIN = re.compile(r"(?<=://)[^\s/@:'\"<>]{1,200}:(?!\d+(?![^\s/,;?#'\"]))[^\s/@\"]*@")
_JDBC_OPAQUE = re.compile(r"(?P<head>jdbc:[\w:.-]+?:)(?!//)(?P<rest>[^\s'\"`<>]+)")
LONGEST_HOST = 300  # with its port
_SEPARATOR = re.compile(r"[?;]")
_FILE_PARAMETERS = re.compile(r";|\?(?=[\w.-]+=)")
_HARMLESS_PARAMETER = re.compile(r"(?:databasename|database|currentschema|schema)=", re.IGNORECASE)
_PARAMETERS_STAY = (
    "jdbc:",
    "sqlserver://",
    "mssql://",
)  # of two databases of one server, which namespaces tell apart
_WEBHOOK = re.compile(
    r"(?:hooks?\.[\w.-]+|[\w.-]*webhook[\w.-]*|outlook\.office(?:365)?\.com|(?:\w+\.)?discord(?:app)?\.com(?=/api/webhooks)|"
    r"api\.telegram\.org)(?::\d+)?(?=/)",
    re.IGNORECASE,
)
# container/path?sv=2024&sig=abc, as names of datasets have it
_QUERY = re.compile(r"\?(?:[\w.~%-]+=[^\s'\"<>&;]*[&;]?)+")
_SIGNED = re.compile(
    r"[?&;](?:sig|sv|signature|x-(?:amz|goog)-\w+|token|key|code|awsaccesskeyid|[\w.-]*secret\w*|[\w.-]*password|access_token)=",
    re.IGNORECASE,
)


def hide_in_addresses(text: str, gone: str) -> str:
    """Text whose addresses have only scheme, host, port and path.

    >>> hide_in_addresses("jdbc:postgresql://ann:pw@db:5432/bank?password=pw", "***")
    'jdbc:postgresql://db:5432/bank'
    >>> hide_in_addresses("s3a://KEY:SECRET@bucket/path", "***")
    's3a://bucket/path'
    >>> hide_in_addresses("https://hooks.slack.com/services/T0/B0/x", "***")
    'https://hooks.slack.com/***'
    >>> hide_in_addresses("container/path?sv=2024&sig=abc", "***")
    'container/path'
    """
    if "://" in text:
        text = _hide(_ODD_LOGIN.sub("", text), gone)
    if "jdbc:" in text:
        text, count = _JDBC_OPAQUE.subn(_opaque, text, count=ADDRESSES)
        if count == ADDRESSES:
            raise TooManyError
    if "?" in text:
        text = _QUERY.sub(lambda found: "" if _SIGNED.search(found[0]) else found[0], text)
    return text


def _hide(text: str, gone: str) -> str:
    pieces, end, address = [], 0, _MAY_BE_MORE.search(text)
    while address:
        after = address.start() + 3
        has_scheme = address.start() > end and text[after - 4] in _SCHEME_SIGNS
        found = _REST.match(text, after) if has_scheme else None
        if found:
            if _MORE_THAN_A_PLACE.search(found[0]):
                scheme = _scheme(text, end, address.start())
                pieces += [text[end:after], _place(scheme, found[0], gone)]
                end = found.end()
                if len(pieces) > 2 * ADDRESSES:
                    raise TooManyError
            after = found.end()
        address = _MAY_BE_MORE.search(text, after)
    return "".join([*pieces, text[end:]]) if pieces else text


def _scheme(text: str, least: int, end: int) -> str:
    """The scheme that ends there."""
    start = end
    while start > max(least, end - 61) and text[start - 1] in _SCHEME_SIGNS:
        start -= 1
    return text[start:end].lstrip("+.:-0123456789")


def _place(scheme: str, rest: str, gone: str) -> str:
    """What stays of an address behind its scheme."""
    rest, _, pointer = rest.partition("#")
    separator = _FILE_PARAMETERS if scheme.lower() in _FILE_SCHEMES else _SEPARATOR
    place, *more = separator.split(rest, maxsplit=1)
    parameters = re.split(r"[?;&]", more[0]) if more else []
    authority, slash, path = _without_slashed_login(place).partition("/")
    user, at, host = authority.rpartition("@")
    if at and not (scheme in CONTAINER_SCHEMES and ":" not in user):
        authority = host
    is_open = f"{scheme}://".lower().startswith(_PARAMETERS_STAY)
    kept = "".join(f";{one}" for one in parameters if _HARMLESS_PARAMETER.match(one) and is_open)
    if (
        slash
        and path
        and _is_webhook(authority + slash + path, len(authority))
        and scheme.lower() in ("http", "https")
    ):
        path = gone
    return authority + slash + path + kept + (f"#{pointer}" if pointer.startswith("/") else "")


def _is_webhook(place: str, length: int) -> bool:
    """Whether it is an address that is a secret.

    No name of a host is that long, and none is looked for in it.
    """
    return length > LONGEST_HOST or _WEBHOOK.match(place) is not None


def _without_slashed_login(place: str) -> str:
    """A place without a login whose password has slashes, as secret keys have.

    What stands before a slash is no port.
    """
    authority, _, path = place.partition("/")
    port = authority.rpartition(":")[2] if ":" in authority else ""
    is_place = port.isdigit() or port.endswith("]") or authority.startswith("arn:")
    is_login = port and not is_place and "@" not in authority and "@" in path
    return path.partition("@")[2] if is_login else place


def _opaque(found: "re.Match[str]") -> str:
    place = re.split(r"[?;]", found["rest"])[0]
    return found["head"] + place[place.rfind("@") if "@" in place else 0 :]
