"""The rules for data that may leave the driver.

An allow-list for the parts of an address, for literals and for the words of a message.

Of an address, scheme, host, port and path are let through; of an expression, everything but its
literals (formats and separators stay). Of a message, everything is but quoted values and what looks
like a credential. Numbers, names of columns and offsets are lineage and stay as they are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from strandline_spark.openlineage.rules import hide, is_secret

HIDDEN = "***"
_MESSAGE_CHARACTERS = 4000
_SHORT = 200  # characters of a text that is worth remembering
_CONTAINER_SCHEMES = {"abfs", "abfss", "wasb", "wasbs"}  # container@account is their host, no login

# Py4JJavaError: says what failed, and is no token
_ERROR_CLASS = r"[A-Z][A-Za-z0-9]*(?:Error|Exception)(?=:|\Z)"
_MIXED = re.compile(
    rf"(?<![`.\w/\0])(?!{_ERROR_CLASS})(?=[\w+/=\-]*\d)(?=[\w+/=\-]*[A-Za-z])[\w+/=\-]{{10,}}(?![`\w])"
)
_ADDRESS = re.compile(
    r"(?<![\w+.\-])(?:(?:jdbc:[\w:]{1,60}:|[A-Za-z][\w+.\-]*:)//?[^\s\"'<>`]+|jdbc:[^\s\"'<>`]+)"
)
_AUTHORITY = re.compile(r"(?P<scheme>(?:[A-Za-z][\w+.\-]*:)+)//(?P<rest>.*)", re.DOTALL)
_ORACLE = re.compile(r"(jdbc:oracle:\w+:)[^@\s]*@")
_LITERAL = re.compile(  # one that does not end goes on to the end; a name in backticks is none
    r"`[^`]*`|(?P<length>\bINTERVAL )?'(?P<text>(?:[^'\\]|\\.|'')*)(?:'|\Z)", re.DOTALL
)
# an apostrophe in a word is none; after a quote without its other half nobody knows what is one
_QUOTATION = re.compile(
    r"(?<!\w)(?:[A-Z_]+|[bruex])?(?P<quote>['\"])(?P<text>(?:\\.|(?P=quote){2}|(?<=\w)'(?=\w)|(?!(?P=quote))[^\\])*)(?P=quote)(?!\w)"
    r"|(?P<lone>(?<!\w)'|'(?!\w)|\").*",
    re.DOTALL,
)
_TIME = r"y{4}|y{1,2}|M{1,4}|d{1,2}|H{1,2}|h{1,2}|m{2}|s{2}|S{1,9}|E{1,4}|a|X{1,3}|Z{1,4}|z|'?T'?"
_FORMAT = re.compile(
    rf"(?=.*(?:yy|MM|dd|HH|hh|mm|ss))(?:{_TIME}|[\s:/.,_+\-])*|[\s.,:+\-/%]*|.{{0,2}}", re.DOTALL
)
_LENGTH = re.compile(r"[\d\s.:+\-]*")
_TYPE = (
    r"(?:BOOLEAN|(?:TINY|SMALL|BIG)?INT|FLOAT|DOUBLE|DECIMAL|NUMERIC|STRING|(?:VAR)?CHAR|BINARY|DATE|TIME(?:STAMP(?:_NTZ|_LTZ)?)?|"
    r"INTERVAL(?: [A-Z]+(?: TO [A-Z]+)?)?|VOID|VARIANT|ARRAY|MAP|STRUCT)"
)
_HARMLESS_QUOTED = re.compile(rf"{_TYPE}(?:[<>(), \d]|{_TYPE})*|spark\.[\w.]+")
_KEPT = "\0"  # before a name that stays: what follows it is no token that mixes letters and digits
_FILE = re.compile(
    r"(?:[a-z][a-z0-9+]*:)?(?:/{1,3}|\.{1,2}/)?(?:[\w.\- ]+/)*[\w\-]+(?:\.[\w\-]+)*"
    r"\.(?:pyc?|zip|egg|whl|jar|class|scala|"
    r"java|sql|json|ya?ml|toml|conf|properties|parquet|orc|avro|csv|txt|log|so|crc|metadata)"
)
_NAME = re.compile(r"[\w.$<>:/\-]{1,200}")
_BEFORE_NAME = re.compile(
    r"(?:\b[Ff]ile|\b[Ff]iles|\bmodule(?: named)?|\bimport name|\bfrom|"
    r"\battribute|\bargument|\bfunction|\bclass|\bpackage|"
    r"\bdirectory:?|\bpath:?|\bname)\s+\Z"
)
_AFTER_NAME = re.compile(
    r"\s+(?:object has no attribute|is not defined|has no attribute|is not a package)"
)
_SECRET_WORD = re.compile(
    r"(?i)(?P<key>\b(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credentials?|"
    r"(?:access|account|api|private|secret)[ ._\-]?key)\s+"
    r"(?:is\s+|was\s+)?)(?!(?:key|for|of|in|on|at|to|from|by|with|and|or|not|is|was|are|has|have|must|may|can|cannot|"
    r"could|does|did|will|expired|invalid|wrong|missing|required|failed)\b)(?P<value>[^\s'\"`(\[]+)"
)

_ADDRESS_KEYS = {
    "namespace",
    "name",
    "metadataUri",
    "warehouseUri",
    "checkpointLocation",
    "uri",
    "location",
    "path",
}
_VERBATIM_KEYS = {
    "_producer", "_schemaURL", "schemaURL", "producer", "eventTime", "eventType", "runId",
    "snapshotId", "queryId", "parentSnapshotId", "fromSnapshotId", "datasetVersion", "committedAt",
    "startedAt", "startOffset", "endOffset",
}  # fmt: skip
_NAMING_KEYS = {"facets", "inputFacets", "outputFacets", "fields", "columnMetrics"}
_NUMBERS = {int, float}


class Clean(dict[str, Any]):
    """An object that is redacted already. Several events may hold it: nobody changes it."""


def redacted(value: Any, key: str = "") -> Any:
    """An event, or a part of it under `key`, with nothing in it that may not leave."""
    if isinstance(value, Clean):
        return value
    if isinstance(value, dict):
        return {
            _cleaned(name, ""): redacted(item, _key_of(name, item, key))
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item, key) for item in value]
    if not isinstance(value, str):
        return HIDDEN if type(value) in _NUMBERS and is_secret(key) else value
    return _cleaned(value, key) if len(value) <= _SHORT else _clean(value, key)


def _key_of(name: str, item: Any, above: str) -> str:
    """Return the key of an item.

    All of a secret's are secret, but a column or a facet may be called as it likes.
    """
    if above in _NAMING_KEYS and isinstance(item, dict):
        return ""
    return above if is_secret(above) else name


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
    return HIDDEN if is_secret(key) else clean_text(text)


def clean_address(text: str) -> str:
    """Scheme, host, port and path of an address; a plain path or name as it is.

    >>> clean_address("s3a://AKIA:se/cret@bucket/wh?versionId=1")
    's3a://bucket/wh'
    >>> clean_address("abfss://lake@account.dfs.core.windows.net/wh")
    'abfss://lake@account.dfs.core.windows.net/wh'
    >>> clean_address("jdbc:postgresql://u:p@db:5432/bank?password=x")
    'jdbc:postgresql://db:5432/bank'
    """
    return hide(_cut(text), HIDDEN) if _AUTHORITY.fullmatch(text) else clean_text(text)


def _cut(address: str) -> str:
    """The allowed parts of an address."""
    address = _ORACLE.sub(r"\1@", address)
    match = _AUTHORITY.fullmatch(address)
    if match is None:
        return re.split(r"[?;]", address, maxsplit=1)[0] if address.startswith("jdbc:") else address
    scheme, rest = match["scheme"], _without_login(match["scheme"], match["rest"])
    ends = "[?#;]" if scheme.startswith("jdbc:") else "[?#]"
    return f"{scheme}//{re.split(ends, rest, maxsplit=1)[0]}"


def _without_login(scheme: str, rest: str) -> str:
    authority = rest.split("/", 1)[0]
    if "@" in authority:
        login, _, host = authority.rpartition("@")
        if ":" not in login and scheme.rstrip(":").rsplit(":", 1)[-1].lower() in _CONTAINER_SCHEMES:
            return rest
        return host + rest[len(authority) :]
    host, colon, port = authority.partition(":")
    if colon and "@" in rest and not (host and re.fullmatch(r"\d*|\d+[,\d:\w.\-]*", port)):
        return rest.split("@", 1)[1]  # a password with a slash in it
    return rest


def clean_text(text: str) -> str:
    """Return a text without secrets.

    Addresses in it are cut to their allowed parts, values of secret-like keys and known tokens are
    hidden.

    >>> clean_text("dbtable=t, password=hunter2")
    'dbtable=t, password=***'
    """
    return hide(_ADDRESS.sub(lambda match: _cut(match[0]), text), HIDDEN)


def clean_expression(text: str) -> str:
    """An SQL expression without its literals.

    Formats, lengths of time and separators tell nothing and stay.

    >>> clean_expression("AES_ENCRYPT(DATE_FORMAT(birthday, 'yyyyMMdd'), 'k3y')")
    "AES_ENCRYPT(DATE_FORMAT(birthday, 'yyyyMMdd'), '***')"
    """
    return clean_text(_LITERAL.sub(_hide_literal, text))


def _hide_literal(match: re.Match[str]) -> str:
    text, length = match["text"], match["length"] or ""
    if text is None or _FORMAT.fullmatch(text) or (length and _LENGTH.fullmatch(text)):
        return match[0]
    return f"{length}'{HIDDEN}'"


def clean_message(text: str) -> str:
    """Return the first lines of an error's message without what may be a secret.

    Quoted values and words that mix letters and digits are hidden. Quoted names of files,
    modules and attributes stay, and so do classes of errors: without them nobody finds a fault.

    >>> clean_message("[NO_LOGIN] Can't log in as 'ann' with password hunter2")
    "[NO_LOGIN] Can't log in as '***' with password ***"
    >>> clean_message("No module named 'bank.loans' (imported by '/opt/jobs/loans.py')")
    "No module named 'bank.loans' (imported by '/opt/jobs/loans.py')"
    """
    text = re.split(
        r"\n\s+at |\nCaused by|\n\nDriver stacktrace|\nJVM stacktrace", text, maxsplit=1
    )[0]
    text = _QUOTATION.sub(_hide_quotation, clean_text(text[:_MESSAGE_CHARACTERS]))
    return _MIXED.sub(HIDDEN, _SECRET_WORD.sub(rf"\g<key>{HIDDEN}", text)).replace(_KEPT, "")


def _hide_quotation(match: re.Match[str]) -> str:
    if match["lone"]:
        return f"{match['lone']}{HIDDEN}"
    quote, text = match["quote"], match["text"]
    if quote == '"' and _HARMLESS_QUOTED.fullmatch(text):
        return match[0]
    if _FILE.fullmatch(text) or (
        _NAME.fullmatch(text) and _names(match.string, match.start(), match.end())
    ):
        return f"{quote}{_KEPT}{clean_address(text)}{quote}"
    return f"{quote}{HIDDEN}{quote}"


def _names(message: str, start: int, end: int) -> bool:
    """Return whether a message quotes the name of a file, a module or the like there."""
    return bool(
        _BEFORE_NAME.search(message[max(0, start - 60) : start])
        or _AFTER_NAME.match(message[end : end + 60])
    )
