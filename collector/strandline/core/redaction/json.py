"""Redaction of JSON documents, before anything of them is stored.

Of Spark's properties and of environments only those on a list of harmless names keep their value.
Elsewhere a value is hidden by its name or place, and every text is redacted by the shared rules.
Redacting twice is redacting once, so a replay of stored events changes nothing.
"""

import json
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import lru_cache, wraps
from typing import NamedTuple, ParamSpec, TypeVar

import msgspec
from jsonschema_rs import Draft202012Validator, RegexOptions

from strandline.core.redaction.rules import is_secret
from strandline.core.redaction.rules.quoted_values import SETTING
from strandline.core.redaction.rules.tokens import HINTS
from strandline.core.redaction.text import GONE, redact_text

P = ParamSpec("P")
U = TypeVar("U")

LONG = 200  # characters of a text that is not remembered
# Strings with a secret in one document. Behind them, a string that may hold another is hidden
# without being parsed.
STRINGS = 5_000

_HARMLESS_PROPERTY = re.compile(
    r"spark\.(?:app\.(?:name|id|startTime)|master|version|submit\.deployMode|driver\.(?:host|port|memory|cores)|"
    r"executor\.(?:id|memory|cores|instances)|dynamicAllocation\.[\w.]+|default\.parallelism|eventLog\.enabled|"
    r"databricks\.clusterUsageTags\.clusterName|yarn\.queue|serializer|extraListeners|scheduler\.mode|"
    r"sql\.(?:shuffle|adaptive|session|streaming|files|sources|warehouse|catalogImplementation|ansi|autoBroadcast)[\w.]*|"
    r"sql\.catalog\.[\w-]+(?:\.(?:type|warehouse|catalog-impl|uri))?|strandline\.[\w.]*|openlineage\.(?:namespace|appName|"
    r"parent\w+|transport\.(?:type|url|topicName)))|"
    r"sql\.streaming\.queryId|streaming\.sql\.batchId|(?:java|scala)\.version|user\.timezone|_producer|_schemaURL"
)
_PROPERTY_FACETS = frozenset(("spark_properties", "environment-properties", "environmentVariables"))

# A string with the colon that makes it a name, a bracket, or a number. JSON has nothing else but
# true, false and null.
_TOKEN = re.compile(r'("(?:[^"\\]++|\\[\s\S])*+"?+)(\s*+:)?+|([{\[])|([}\]])|(-?\d[^\s,\]}]*+)')
_TEXT = re.compile(r'"(?:[^"\\]++|\\[\s\S])*+"?+')
_STRING = json.JSONDecoder(strict=False)
# Objects whose members are named after facets or columns, whatever is in them.
_NAMING = frozenset(("facets", "inputFacets", "outputFacets", "fields", "columnMetrics"))

# Objects whose keys and values everybody may see.
_PUBLIC = "tags"
# Labels of a name and of its value, each a member of one object.
_LABELS = frozenset(("name", "key", "Name", "Key"))
_LABELLED = frozenset(("value", "Value", "val", "Val"))
# An option in a list, whose value is the next item.
_OPTION = re.compile(r"--?[a-zA-Z][\w.-]*")
_LAST = re.compile(r"\s*,\s*(?:\"(?:[^\"\\]++|\\[\s\S])*+\"|-?\d[^\s,\]}]*+)\s*\]")
_NAME = re.compile(r"[\w.-]+")
_PLAIN = re.compile(r'"[\w.-]*"')
# Lists of columns, whose first item names no secret.
_COLUMNS = re.compile(
    r"(?:columns?|cols?|fields?|keys?|names?|by|tags?|projection|schema)\Z", re.IGNORECASE
)

_BLANK = r"(?:[ \t\n\r\f\v]|\\[nrtf])*"
# Known tokens, calls with keys, commands with an option, and addresses that are secret as they
# are, in lower case.
_CALLS = (
    r"(?:crypt|hmac|_with_key|encrypt_literal|s3|gcs|oss|cosn|iceberg|deltalake|hudi|mysql|postgresql|"
    rf"mongodb|remote|azureblobstorage|redis)\w*{_BLANK}\("
)
_COMMANDS = (
    r"(?:mysql|mariadb|sqlcmd|bcp|isql|redis|ldap|sshpass|beeline|mongo|login|cqlsh|influx|htpasswd|"
    r"lftp|zip|7z|keygen|openssl)[\s\S]*?(?:[ \t\n\r\f\v]|\\[nrtf])-[a-z]"
)
_TOKENS = (
    rf"{HINTS}|{_CALLS}|{_COMMANDS}|vault{_BLANK}login|pgpass|bind_?pw|"
    r'/[^"/@ ]+@|'
    r'://[^"/ \t\n\r\f\v]*(?:hook|discord|telegram|outlook)|'
    r"[?&;#](?:sig|x-amz-[a-z0-9_-]+|x-goog-[a-z0-9_-]+)=|"
    r"sig=|[?&;#](?:code|sid|jsessionid|session_?id|googleaccessid)="
)

# A facet without any of these, and without an address that has more than a place, has nothing to
# redact.
_SECRET_WORDS = (
    r"jdbc:|pass(?:w|phrase|code|[^a-z])|pwd|secret|token|credential|key|auth|signature|jaas|sas|cookie|curl|identified|"
    rf"\\/|\\u00|{_TOKENS}"
)
_SUSPICIOUS = (
    _SECRET_WORDS + rf"|options|properties|environment|(?:with|encryption){_BLANK}=?{_BLANK}\("
)
# Nor has an event without its facets, `{}` standing for each.
_SUSPICIOUS_REST = (
    _SECRET_WORDS + rf"|(?:options|properties|with|encryption){_BLANK}=?{_BLANK}\(|"
    r'(?:properties|variables)"\s*:\s*(?:[^\s{]|\{\s*[^\s}])'
)
_SUSPICIOUS_ADDRESS = (
    r'://[^"/ \t\n\r\f\v]*@|://[^" \t\n\r\f\v]*(?:[?;]|#[^/])|'
    r'://[^"/ \t\n\r\f\v]*:[0-9]*[^"0-9/ \t\n\r\f\v][^" \t\n\r\f\v]*@'
)


def _finder(*patterns: str) -> Draft202012Validator:
    """Return a validator that finds any of the patterns in one pass, faster than `re`."""
    return Draft202012Validator({"pattern": "|".join(patterns)}, pattern_options=RegexOptions())


_FINDER = _finder(_SUSPICIOUS, _SUSPICIOUS_ADDRESS)
_REST_FINDER = _finder(_SUSPICIOUS_REST, _SUSPICIOUS_ADDRESS)


def is_suspicious(key: str, raw: bytes) -> bool:
    """Return whether a facet may hold a secret; False is a promise."""
    return key in _PROPERTY_FACETS or _FINDER.is_valid(raw.lower().decode("latin-1"))


class _Place(NamedTuple):
    """The rules for the members of an object.

    strict: only harmless properties keep their value. hidden: no member does. naming: a member's
    name says nothing about its object. listed: in a list of environment variables. named: one of
    these, with its name beside its value.
    """

    strict: bool = False
    hidden: bool = False
    naming: bool = False
    listed: bool = False
    named: bool = False


class _Pair:
    """An object that may be a pair of a secret's name and its value."""

    __slots__ = ("public", "secret", "start", "valued")

    def __init__(self, start: int, *, secret: bool, public: bool) -> None:
        self.start = start
        self.secret = secret
        self.public = public
        self.valued = False

    def is_named(self, name: str) -> bool:
        """Take the name; return whether it names a secret whose value came before."""
        self.secret = self.secret or (not self.public and _is_secret(name))
        return self.secret and self.valued


class _List:
    """A list whose next value may be a secret because of the value before it."""

    __slots__ = ("columns", "inner", "is_next", "started")

    def __init__(self, name: str, around: "_List | None") -> None:
        self.columns, self.inner = _COLUMNS.search(name) is not None, around is not None
        self.started = self.is_next = False
        if around:
            around.started, around.is_next = True, False

    def take(self, value: str, text: str, end: int) -> bool:
        """Take a value that ends at `end`; return whether it is a secret.

        It is one behind a secret's option, or behind a secret's name if the list has no third.
        """
        content = _content(value) if value[0] == '"' else ""
        hidden = self.is_next and not content.startswith("-")
        is_first = not self.started
        self.started = True
        self.is_next = False
        if content and _is_secret(content):
            is_pair = is_first and self._may_be_pair(content) and _LAST.match(text, end)
            self.is_next = bool(is_pair or _OPTION.fullmatch(content))
        return hidden

    def _may_be_pair(self, content: str) -> bool:
        if self.columns:
            return False
        if SETTING.fullmatch(content):
            return True
        return self.inner and _NAME.fullmatch(content) is not None


def has_secret(rest: bytes) -> bool:
    """Return whether an event without its facets (`{}` in place of each) holds a secret."""
    return (
        _REST_FINDER.is_valid(rest.lower().decode("latin-1")) and redact_json("", rest) is not rest
    )


def redact_json(key: str, raw: bytes) -> bytes:
    """Return the facet, or whole document, without secrets; the same object if it has none.

    All other bytes stay. Nothing is decoded, so any depth, any number and a name that comes twice
    stay too, and a document that was cut off loses most of its secrets. A list is read like one
    value of its name. Raises ValueError if the bytes are no text.
    """
    text = raw.decode()
    kept = _redacted(key, text)
    return raw if kept is text else kept.encode()


def redact_bytes(body: bytes) -> bytes:
    """Return any bytes without secrets, read as a document and, if they are no JSON, as text."""
    text = _redacted("", body.decode("utf-8", "surrogateescape"))
    try:
        msgspec.json.decode(text.encode(), type=msgspec.Raw)
    except (ValueError, RecursionError):
        text = redact_text(text)
    return text.encode("utf-8", "surrogateescape")


def _redacted(key: str, text: str) -> str:
    if not _is_secret(key) and not any(map(_may_hide, set(_TEXT.findall(text)))):
        return text  # names and places hide nothing without a secret's name
    kept, late = _without_secrets(key, text, frozenset())
    return _without_secrets(key, text, late)[0] if late else kept


def _without_secrets(key: str, text: str, secret_pairs: AbstractSet[int]) -> tuple[str, set[int]]:
    """Return the text without secrets, and the starts of objects that need another pass.

    In these the value comes before the name that makes it a secret. `secret_pairs` are those of an
    earlier pass.
    """
    pieces: list[str] = []
    end, cursor = 0, _Cursor(key, secret_pairs)
    for token in _TOKEN.finditer(text):
        string, colon, opened, closed, number = token.groups()
        hidden = False
        if colon:
            cursor.read_name(_content(string))
        elif opened:
            cursor.enter(opened, token.start())
        elif closed:
            cursor.leave()
        else:
            hidden = cursor.hides(string, number, text, token.end())
        if string and len(pieces) > 3 * STRINGS and _may_hold_one(string):
            hidden = True
        if string or hidden:
            value = string or number
            kept = _hidden(value) if hidden else _redacted_string(value)
            if kept != value:
                pieces += [text[end : token.start()], kept, colon or ""]
                end = token.end()
    return "".join([*pieces, text[end:]]) if pieces else text, cursor.late


class _Cursor:
    """The position of a pass: the next value's name, and the objects and lists around it."""

    __slots__ = ("_around", "_name", "_pair", "_place", "_row", "_secret_pairs", "late")

    def __init__(self, key: str, secret_pairs: AbstractSet[int]) -> None:
        self._name = key
        self._place = _Place(naming=True)
        self._pair = _Pair(-1, secret=False, public=True)
        self._row: _List | None = None
        self._around: list[tuple[str, _Place, _Pair, _List | None]] = []
        self._secret_pairs = secret_pairs
        self.late = set[int]()

    def read_name(self, name: str) -> None:
        """Take the name of the next value."""
        self._name = name
        self._pair.valued = self._pair.valued or name in _LABELLED

    def enter(self, bracket: str, start: int) -> None:
        """Enter an object or list that starts there."""
        name, place, pair = self._name, self._place, self._pair
        self._around.append((name, place, pair, self._row))
        self._row = _List(name, self._row) if bracket == "[" else None
        if bracket == "{":
            is_value = pair.secret and name in _LABELLED
            self._place = _inside(name, place._replace(hidden=True) if is_value else place)
            self._name = ""
            self._pair = _Pair(start, secret=start in self._secret_pairs, public=name == _PUBLIC)
        elif name == "environmentVariables":
            self._place = place._replace(listed=True)

    def leave(self) -> None:
        """Leave it; ignore a bracket that closes nothing."""
        if self._around:
            self._name, self._place, self._pair, self._row = self._around.pop()
        else:
            self._row = None

    def hides(self, string: str, number: str, text: str, end: int) -> bool:
        """Take a value that ends there; return whether its name or place makes it a secret."""
        if string and self._name in _LABELS and self._pair.is_named(_content(string)):
            self.late.add(self._pair.start)
        in_list = self._row is not None and self._row.take(string or number, text, end)
        return in_list or _is_hidden(self._name, self._place, self._pair)


def _may_hold_one(string: str) -> bool:
    return not _PLAIN.fullmatch(string) and _FINDER.is_valid(string.lower())


def _is_hidden(name: str, place: _Place, pair: _Pair) -> bool:
    """Return whether a value of that name is hidden, whatever it is."""
    if place.hidden or (pair.secret and name in _LABELLED):
        return True
    if place.named and name == "name":
        return False
    return not _is_harmless_property(name) if place.strict else _is_secret(name)


def _remembered(function: Callable[P, U]) -> Callable[P, U]:
    """Return the function with a cache for calls with a short text: these come again and again."""
    cached = lru_cache(maxsize=10_000)(function)

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> U:
        text = arguments[0]
        assert isinstance(text, str)
        return cached(*arguments) if len(text) < LONG else function(*arguments, **named)

    return call


@_remembered
def _inside(name: str, place: _Place) -> _Place:
    """Return the rules for the object of this name."""
    strict = place.strict or name in _PROPERTY_FACETS
    hidden = place.hidden or (not strict and not place.naming and _is_secret(name))
    return _Place(
        strict, hidden, name in _NAMING, named=place.listed and name == "environmentVariables"
    )


@_remembered
def _is_secret(name: str) -> bool:
    return name in _PROPERTY_FACETS or is_secret(name)


@_remembered
def _is_harmless_property(name: str) -> bool:
    return _HARMLESS_PROPERTY.fullmatch(name) is not None


@_remembered
def _redacted_string(string: str) -> str:
    """Return a JSON string without secrets, as it is written if it has none."""
    content = _content(string)
    kept = redact_text(content)
    return string if kept == content else json.dumps(kept)


def _may_hide(string: str) -> bool:
    """Return whether a string holds a secret, or is the name of one."""
    return _is_secret(_content(string)) or _redacted_string(string) != string


def _hidden(value: str) -> str:
    """Return the string in place of a secret string or number; an empty string stays."""
    return value if value == '""' else f'"{GONE}"'


def _content(string: str) -> str:
    if "\\" not in string:
        return string[1:].removesuffix('"')
    try:
        content: str = _STRING.decode(string)
    except ValueError:  # an invalid escape, or one that was cut off
        return string[1:]
    return content
