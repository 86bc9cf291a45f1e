"""Addresses: logins, secret parameters and the paths of webhooks are hidden; the rest stays.

Of a database's address the parameters go except the database, because namespaces have none.
"""

import re
from urllib.parse import unquote

from .names import is_guarded, is_secret
from .values import is_code, is_harmless

# Containers, not users: abfss://container@account.dfs.core.windows.net/path
CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs", "viewfs")
_SCHEME_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.:-"
_PARAMETERS = r"[?;](?:[^\s'\"`\\{]+|\{[^{}'\"\\]*\}|\{)*"
_REST = re.compile(rf"[^\s'\"`<>\\?;]+(?:{_PARAMETERS})?|{_PARAMETERS}")
# An address with more than a place. Only these are parsed: a text may have very many others.
_MORE_THAN_A_PLACE = re.compile(
    r"://(?:[^\s'\"`<>\\?;@:hHbB]|[hH](?![oO][oO][kK\u212a])|[bB](?![oO][tT])|:(?=\d))*"
    r"(?:[?;@]|:(?!\d)|[hH][oO][oO][kK\u212a]|[bB][oO][tT])"
)
# A login whose password has characters that would end an address; a port has none.
_ODD_LOGIN = re.compile(r"(?<=://)[^\s/@:'\"<>]{1,200}:(?!\d+(?![^\s/,;?#'\"]))[^\s/@\"]*@")
_OPAQUE_JDBC = re.compile(r"(?P<head>jdbc:[\w:.-]+?:)(?!//)(?P<rest>[^\s'\"`<>]+)")
_DATABASE_SCHEMES = ("jdbc:", "sqlserver:", "mssql:")
_DATABASE = re.compile(r"(?:databasename|database|currentschema|schema)=", re.IGNORECASE)
_LONGEST_HOST = 300  # with its port
_WEBHOOK = re.compile(
    r"(?:hooks?\.[\w.-]+|[\w.-]*webhook[\w.-]*|outlook\.office(?:365)?\.com|"
    r"(?:\w+\.)?discord(?:app)?\.com(?=/api/webhooks)|api\.telegram\.org)(?::\d+)?(?=/)",
    re.IGNORECASE,
)
_INTEGRATION = re.compile(
    r"(?P<head>//(?:events\.(?:eu\.)?pagerduty\.com/integration/|maker\.ifttt\.com/trigger/"
    r"[\w-]{1,100}/(?:json/)?with/key/))[\w-]+"
)
_PARAMETER = re.compile(
    r"(?P<head>(?:[?&;#]|(?<![\w.%$)\]/=-])(?=(?:sig|signature)=[^\s&'\"<>]{1,500}&))"
    r"(?:amp;)?(?P<name>[\w.~%-]{1,100})=)(?P<value>(?!\{)[^\s&;#'\"<>`\\]+)",
    re.IGNORECASE,
)
# A parameter in a parameter: odbc_connect=DRIVER%3D..%3BPWD%3D..
_ENCODED = re.compile(
    r"(?P<head>(?:%3B|%26|%20|(?<![\w.%-]))(?P<name>[A-Za-z][\w.+-]{0,99})%3D)"
    r"(?P<value>(?:[^\s%&;'\"]|%(?!3B|26|20))+)",
    re.IGNORECASE,
)
_BEFORE_PARAMETER = ("?", "&", ";", "#")
_SIGNATURE_NAME = re.compile(
    r"sig|signature|x-(?:amz|goog)-[\w-]+|awsaccesskeyid|googleaccessid", re.IGNORECASE
)
_SIGNED = re.compile(r"(?<!\w)(?:sig|signature)=|x-(?:amz|goog)-signature=", re.IGNORECASE)
# What is signed beside it: each new signature has other values, but the file is the same.
_SIGNED_NAME = re.compile(
    r"s[vetpr]|spr|ss|srt|sk(?:oid|tid|t|e|s|v)|expires|policy|key-pair-id", re.IGNORECASE
)
_OPEN_NAME = re.compile(r"key|code|sid|jsessionid|session(?:_?id)?", re.IGNORECASE)
_GENERATED = re.compile(
    r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w.~%+/=!-]{16,}|"
    r"(?=[^\d]*\d)(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])\w{10,}"
)


def hide_in_addresses(text: str, gone: str) -> str:
    """Return the text without the secrets of its addresses.

    >>> hide_in_addresses("jdbc:postgresql://ann:pw@db:5432/bank?password=pw", "***")
    'jdbc:postgresql://db:5432/bank'
    >>> hide_in_addresses("s3a://KEY:SECRET@bucket/path", "***")
    's3a://bucket/path'
    >>> hide_in_addresses("https://hooks.slack.com/services/T0/B0/x", "***")
    'https://hooks.slack.com/***'
    >>> hide_in_addresses("http://airflow/log?dag_run_id=1&token=abc", "***")
    'http://airflow/log?dag_run_id=1&token=***'
    """
    if "://" in text:
        text = _cut_addresses(_ODD_LOGIN.sub("", text), gone)
        text = _INTEGRATION.sub(lambda address: address["head"] + gone, text)
    if "jdbc:" in text:
        text = _OPAQUE_JDBC.sub(_cut_opaque, text)
    if "%3D" in text or "%3d" in text:
        text = _ENCODED.sub(lambda parameter: _hidden_encoded(parameter, gone), text)
    if "=" in text and any(sign in text for sign in _BEFORE_PARAMETER):
        text = hide_parameters(text, gone)
    return text


def _hidden_encoded(parameter: re.Match[str], gone: str) -> str:
    value = parameter["value"]
    if value.startswith(gone) or not is_secret(parameter["name"]):
        return parameter[0]
    return parameter["head"] + gone


def hide_parameters(text: str, gone: str) -> str:
    """Return the text with the values of secret parameters hidden.

    >>> hide_parameters("container/path?sv=2024&sig=abc&page=2", "***")
    'container/path?sv=***&sig=***&page=2'
    """
    is_signed = _SIGNED.search(text) is not None

    def hidden(parameter: re.Match[str]) -> str:
        value = parameter["value"]
        if value.startswith(gone) or is_harmless(value):
            return parameter[0]
        if _is_secret_parameter(parameter["name"], value, is_signed=is_signed):
            return parameter["head"] + gone
        return parameter[0]

    return _PARAMETER.sub(hidden, text)


def _is_secret_parameter(name: str, value: str, *, is_signed: bool) -> bool:
    name = unquote(name)
    if _SIGNATURE_NAME.fullmatch(name):
        return True
    if is_signed and _SIGNED_NAME.fullmatch(name):
        return True
    if _OPEN_NAME.fullmatch(name):
        return _GENERATED.match(value) is not None
    return is_secret(name) or (is_guarded(name) and is_code(value))


def _cut_addresses(text: str, gone: str) -> str:
    """Return the text with the login, webhook and database parameters of each address cut."""
    pieces: list[str] = []
    end = 0
    address = _MORE_THAN_A_PLACE.search(text)
    while address:
        after = address.start() + 3
        before = text[max(end, address.start() - 60) : address.start()]
        scheme = before[len(before.rstrip(_SCHEME_CHARACTERS)) :]
        rest = _REST.match(text, after) if scheme else None
        if rest:
            pieces += [text[end:after], _cut_rest(scheme.lstrip("+.:-0123456789"), rest[0], gone)]
            end = after = rest.end()
        address = _MORE_THAN_A_PLACE.search(text, after)
    return "".join([*pieces, text[end:]]) if pieces else text


def _cut_rest(scheme: str, rest: str, gone: str) -> str:
    """Return the part of an address behind its scheme that may be shown."""
    separator = re.search(r"[?;#]", rest)
    place = rest[: separator.start()] if separator else rest
    parameters = rest[len(place) :]
    authority, slash, path = _without_slashed_login(place).partition("/")
    user, at, host = authority.rpartition("@")
    if at and not (scheme.lower() in CONTAINER_SCHEMES and ":" not in user):
        authority = host
    is_web = scheme.lower() in ("http", "https")
    if is_web and path and _is_webhook(f"{authority}/{path}", len(authority)):
        return authority + slash + gone
    if f"{scheme}:".lower().startswith(_DATABASE_SCHEMES):
        databases = [part for part in re.split(r"[?;&]", parameters) if _DATABASE.match(part)]
        parameters = "".join(f";{part}" for part in databases)
    return authority + slash + path + parameters


def _is_webhook(place: str, length: int) -> bool:
    """Return whether an address is a secret as a whole; no real host is longer than the limit."""
    return length > _LONGEST_HOST or _WEBHOOK.match(place) is not None


def _without_slashed_login(place: str) -> str:
    """Return a place without a login whose password has slashes, as secret keys have."""
    authority, _, path = place.partition("/")
    if "@" in authority or "@" not in path or authority.startswith("arn:"):
        return place
    behind_colon = authority.rpartition(":")[2] if ":" in authority else ""
    if not behind_colon or behind_colon.isdigit() or behind_colon.endswith("]"):
        return place  # a host, with its port or as an IPv6 address
    return path.partition("@")[2]


def _cut_opaque(address: re.Match[str]) -> str:
    """Return a JDBC address without `//`, without its login and parameters."""
    place = re.split(r"[?;]", address["rest"])[0]
    return address["head"] + place[place.rfind("@") if "@" in place else 0 :]
