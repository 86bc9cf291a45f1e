"""What may leave the driver: an allow-list for the parts of an address, for literals and for the words of a message.

Of an address scheme, host, port and path are let through, of an expression everything but its literals (formats and
separators stay), of a message everything but quoted values and what looks like a credential. Numbers, names of columns
and offsets are lineage and stay as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

HIDDEN = "***"
_MESSAGE_CHARACTERS = 4000
_SHORT = 200  # characters of a text that is worth remembering
_CONTAINER_SCHEMES = {"abfs", "abfss", "wasb", "wasbs"}  # container@account is their host, no login

_SECRET_KEY = (
    r"[\w.\-]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|api[._\-]?key|access[._\-]?key|account[._\-]?key|"
    r"private[._\-]?key|encryption[._\-]?key|auth(?:orization)?|signature|sas|jaas[._\-]?config)[\w.\-]*"
)
_KEY_VALUE = re.compile(
    rf"(?i)(?P<key>[\"'`]?\b{_SECRET_KEY}[\"'`]?\s*(?:=>|[=:]|\s)\s*)"
    r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.|'')*'|(?:Bearer|Basic)\s+\S+|[^\s,;&)}\]\"']+)"
)
_KEY_ONLY = re.compile(rf"(?i){_SECRET_KEY}")
_TOKEN = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b|\beyJ[\w\-]+\.[\w\-]+\.[\w\-]*|\bgh[pousr]_\w{20,}|\bxox[abprs]-[\w\-]{8,}|"
    r"\bdapi[0-9a-f]{16,}|\bAIza[\w\-]{20,}|\b(?:sk|pk|rk)[-_](?:live|test|proj)?[-_]?\w{12,}|"
    r"(?:Bearer|Basic)\s+[\w+/=.\-]{6,}|-----BEGIN[\s\S]*?(?:-----END[^-]*-----|$)"
)
_MIXED = re.compile(r"(?<![`.\w/])(?=[\w+/=\-]*\d)(?=[\w+/=\-]*[A-Za-z])[\w+/=\-]{10,}(?![`\w])")
_ADDRESS = re.compile(r"(?:jdbc:[\w:]+:|[A-Za-z][\w+.\-]*:)//?[^\s\"'<>`]+|jdbc:[^\s\"'<>`]+")
_AUTHORITY = re.compile(r"(?P<scheme>(?:[A-Za-z][\w+.\-]*:)+)//(?P<rest>.*)", re.DOTALL)
_ORACLE = re.compile(r"(jdbc:oracle:\w+:)[^@\s]*@")
_LITERAL = re.compile(r"'((?:[^'\\]|\\.|'')*)'")
_QUOTED = re.compile(r"\"([^\"\n]*)\"")
_TIME = r"y{4}|y{1,2}|M{1,4}|d{1,2}|H{1,2}|h{1,2}|m{2}|s{2}|S{1,9}|E{1,4}|a|X{1,3}|Z{1,4}|z|'?T'?"
_FORMAT = re.compile(rf"(?=.*(?:yy|MM|dd|HH|hh|mm|ss))(?:{_TIME}|[\s:/.,_+\-])*|[\d\s.,:+\-/%]*|.{{0,2}}")
_HARMLESS_QUOTED = re.compile(r"[A-Z][A-Z_ <>(),\d]*|spark\.[\w.]+|[A-Za-z_]\w{0,30}\(.*\)")

_ADDRESS_KEYS = {"namespace", "name", "metadataUri", "warehouseUri", "checkpointLocation", "uri", "location", "path"}
_VERBATIM_KEYS = {
    "_producer", "_schemaURL", "schemaURL", "producer", "eventTime", "eventType", "runId", "snapshotId", "queryId",
    "parentSnapshotId", "fromSnapshotId", "datasetVersion", "committedAt", "startedAt", "startOffset", "endOffset",
}  # fmt: skip


class Clean(dict[str, Any]):
    """An object that is redacted already. Several events may hold it: nobody changes it."""


def redacted(value: Any, key: str = "") -> Any:
    """An event, or a part of it under `key`, with nothing in it that may not leave."""
    if isinstance(value, Clean):
        return value
    if isinstance(value, dict):
        return {_cleaned(name, ""): redacted(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [redacted(item, key) for item in value]
    if not isinstance(value, str):
        return value
    return _cleaned(value, key) if len(value) <= _SHORT else _clean(value, key)


@lru_cache(maxsize=4096)
def _cleaned(text: str, key: str) -> str:
    """Events say the same short texts again and again: names, types, schemas."""
    return _clean(text, key)


def _clean(text: str, key: str) -> str:
    if key in _VERBATIM_KEYS:
        return text if key not in ("startOffset", "endOffset") else clean_text(text)
    if key in _ADDRESS_KEYS:
        return clean_address(text)
    if key == "errorMessage" or key == "message":
        return clean_message(text)
    if key == "transformationDescription" or key == "description":
        return clean_expression(text)
    return HIDDEN if _KEY_ONLY.fullmatch(key) else clean_text(text)


def clean_address(text: str) -> str:
    """Scheme, host, port and path of an address; a plain path or name as it is.

    >>> clean_address("s3a://AKIA:se/cret@bucket/wh?versionId=1")
    's3a://bucket/wh'
    >>> clean_address("abfss://lake@account.dfs.core.windows.net/wh")
    'abfss://lake@account.dfs.core.windows.net/wh'
    >>> clean_address("jdbc:postgresql://u:p@db:5432/bank?password=x")
    'jdbc:postgresql://db:5432/bank'
    """
    return _hide(_cut(text)) if _AUTHORITY.fullmatch(text) else clean_text(text)


def _cut(address: str) -> str:
    """The allowed parts of an address."""
    address = _ORACLE.sub(r"\1@", address)
    found = _AUTHORITY.fullmatch(address)
    if found is None:
        return re.split(r"[?;]", address, maxsplit=1)[0] if address.startswith("jdbc:") else address
    scheme, rest = found["scheme"], _without_login(found["scheme"], found["rest"])
    return f"{scheme}//{re.split('[?#;]' if scheme.startswith('jdbc:') else '[?#]', rest, maxsplit=1)[0]}"


def _without_login(scheme: str, rest: str) -> str:
    authority = rest.split("/", 1)[0]
    if "@" in authority:
        login, _, host = authority.rpartition("@")
        if ":" not in login and scheme.rstrip(":").rsplit(":", 1)[-1].lower() in _CONTAINER_SCHEMES:
            return rest
        return host + rest[len(authority) :]
    _, colon, port = authority.partition(":")
    if colon and "@" in rest and not re.fullmatch(r"\d*|\d+[,\d:\w.\-]*", port):
        return rest.split("@", 1)[1]  # a password with a slash in it
    return rest


def clean_text(text: str) -> str:
    """Any text: addresses in it cut to their allowed parts, values of secret-like keys and known tokens hidden.

    >>> clean_text("dbtable=t, password=hunter2")
    'dbtable=t, password=***'
    """
    return _hide(_ADDRESS.sub(lambda found: _cut(found[0]), text))


def _hide(text: str) -> str:
    return _KEY_VALUE.sub(_hide_value, _TOKEN.sub(HIDDEN, text))


def _hide_value(found: re.Match[str]) -> str:
    blank = found["key"].rstrip("\"'` ")
    if found["key"].endswith((" ", "\t", "\n")) and not blank.endswith(("=", ":", ">")):
        # "password is expired" is a sentence; "password 'x'" and OPTIONS (password "x") are not
        return f"{found['key']}{HIDDEN}" if found["value"][0] in "'\"" else found[0]
    return f"{found['key']}{HIDDEN}"


def clean_expression(text: str) -> str:
    """An SQL expression without its literals; formats, numbers and separators tell nothing and stay.

    >>> clean_expression("AES_ENCRYPT(DATE_FORMAT(birthday, 'yyyyMMdd'), 'k3y')")
    "AES_ENCRYPT(DATE_FORMAT(birthday, 'yyyyMMdd'), '***')"
    """
    return clean_text(_LITERAL.sub(lambda found: found[0] if _FORMAT.fullmatch(found[1]) else f"'{HIDDEN}'", text))


def clean_message(text: str) -> str:
    """An error's message: its first lines, without quoted values and without what mixes letters and digits."""
    text = re.split(r"\n\s+at |\nCaused by|\n\nDriver stacktrace|\nJVM stacktrace", text, maxsplit=1)[0]
    text = _LITERAL.sub(f"'{HIDDEN}'", clean_text(text[:_MESSAGE_CHARACTERS]))
    text = _QUOTED.sub(lambda found: found[0] if _HARMLESS_QUOTED.fullmatch(found[1]) else f'"{HIDDEN}"', text)
    return _MIXED.sub(HIDDEN, text)
