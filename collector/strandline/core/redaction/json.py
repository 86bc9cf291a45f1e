"""Redaction of JSON documents, before anything of them is stored.

Of Spark's properties and of environments only those on a list of harmless names keep their value.
Elsewhere a value is hidden by its name or place, and every text is redacted by the shared rules.
Redacting twice is redacting once, so a replay of stored events changes nothing.
"""

import json
import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from jsonschema_rs import Draft202012Validator, RegexOptions

from strandline.core.redaction.rules import is_code, is_guarded, is_secret
from strandline.core.redaction.rules.commands import PROGRAMS
from strandline.core.redaction.rules.names import SUSPICIOUS_WORDS, WORDS
from strandline.core.redaction.rules.parentheses import CALLS
from strandline.core.redaction.rules.quoted import is_setting
from strandline.core.redaction.rules.tokens import HINTS
from strandline.core.redaction.text import GONE, redact_text

LONG = 200  # characters of a text that is not remembered
# Strings with a secret in one document. Behind them, a string that may hold another is hidden
# without a closer look.
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
_ENVIRONMENT = "environmentVariables"
_PROPERTY_FACETS = frozenset(("spark_properties", "environment-properties", _ENVIRONMENT))
# Objects whose members are named after facets or columns, whatever is in them.
_NAMING = frozenset(("facets", "inputFacets", "outputFacets", "fields", "columnMetrics"))
# Objects whose keys and values everybody may see.
_PUBLIC = "tags"
# Labels of a name and of its value, each a member of one object.
_LABELS = ("name", "key", "Name", "Key")
_LABELLED = frozenset(("value", "Value", "val", "Val"))
# Lists of columns, whose first item names no secret.
_COLUMNS = re.compile(
    r"(?:columns?|cols?|fields?|keys?|names?|by|tags?|projection|schema)\Z", re.IGNORECASE
)
_OPTION = re.compile(r"--?[a-zA-Z][\w.-]*")  # its value is the next item of a list
_NAME = re.compile(r"[\w.-]+")

_JSON_STRING = r'"(?:[^"\\]++|\\[\s\S])*+"?+'
_STRING = re.compile(_JSON_STRING)
_MEMBER = re.compile(
    rf"(?P<name>{_JSON_STRING})(?:(?P<colon>\s*+:\s*+)(?P<value>{_JSON_STRING}|-?\d[^\s,\]}}]*+)?)?"
)
_DECODER = json.JSONDecoder(strict=False)

# A document has nothing to redact without any of these, in lower case.
_BLANK = r"(?:[ \t\n\r\f\v]|\\[nrtf])*"
_SUSPICIOUS = (
    "|".join(WORDS),
    SUSPICIOUS_WORDS,
    HINTS,
    rf"(?:{'|'.join(CALLS)})\w*{_BLANK}=?{_BLANK}\(",
    rf"(?:{'|'.join(map(str.lower, PROGRAMS))})[\s\S]*?(?:[ \t\n\r\f\v'\"]|\\[nrtf])--?[a-z]",
    "pgpass|login",
    "https? -a|kinit|chpasswd",
    "(?:net user?|schtasks|alias set|securestring|sqlplus|impdp|expdp|sqlldr) ",
    r"(?:hmac\.new|jwt\.(?:en|de)code)\(",
    r'(?:properties|variables)"\s*:\s*(?:[^\s{]|\{\s*[^\s}])',
    r'jdbc:|\\/|\\u00|/[^"/@ ]+@|:[^"@: ]+@[\w.-]+[:(]',
    r"sig=|[?&;#](?:x-(?:amz|goog)-[a-z0-9_-]+|code|sid|session_?id)=",
    r'://[^"/ \t\n\r\f\v]*(?:hook|discord|telegram|outlook|pagerduty|ifttt)',
    r'://[^"/ \t\n\r\f\v]*@|://[^" \t\n\r\f\v]*(?:[?;]|#[^/])',
    r'://[^"/ \t\n\r\f\v]*:[0-9]*[^"0-9/ \t\n\r\f\v][^" \t\n\r\f\v]*@',
)
# It finds any of them in one pass, faster than `re`.
_FINDER = Draft202012Validator({"pattern": "|".join(_SUSPICIOUS)}, pattern_options=RegexOptions())


def is_suspicious(key: str, raw: bytes) -> bool:
    """Return whether a facet may hold a secret; False is a promise."""
    return key in _PROPERTY_FACETS or _FINDER.is_valid(raw.lower().decode("latin-1"))


def has_secret(rest: bytes) -> bool:
    """Return whether an event without its facets (`{}` in place of each) holds a secret."""
    return is_suspicious("", rest) and redact_json("", rest) is not rest


def redact_json(key: str, raw: bytes) -> bytes:
    """Return the facet, or whole document, without secrets; the same object if it has none.

    Of members with the same name the last one stays. A document that cannot be decoded is read
    member by member. Raises ValueError if the bytes are no text.
    """
    text = raw.decode()
    strings = _Strings()
    if not _is_secret(key) and not any(map(strings.may_hide, set(_STRING.findall(text)))):
        return raw  # names and places hide nothing without a secret's name
    try:
        document = msgspec.json.decode(raw)
        redacted = _redact(document, key, _Place(naming=True), strings)
        is_whole = redacted == document and not _repeats_a_name(text)
        return raw if is_whole else msgspec.json.encode(redacted)
    except (ValueError, RecursionError):
        kept = _redact_members(text, strings)
        return raw if kept == text else kept.encode()


def _repeats_a_name(text: str) -> bool:
    """Return whether an object has two members of one name: decoding dropped the first of them."""
    repeated = []

    def count(members: list[tuple[str, Any]]) -> None:
        repeated.append(len(dict(members)) < len(members))

    json.loads(text, object_pairs_hook=count, parse_int=str, parse_float=str)
    return any(repeated)


def redact_bytes(body: bytes) -> bytes:
    """Return any bytes without secrets, read as a document and, if they are no JSON, as text."""
    try:
        msgspec.json.decode(body)
        return redact_json("", body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "surrogateescape")
        text = redact_text(_redact_members(text, _Strings()))
        return text.encode("utf-8", "surrogateescape")


class _Strings(dict[str, str]):
    """The strings of a document without secrets, each redacted once."""

    secrets = 0

    def __missing__(self, text: str) -> str:
        is_plain = _NAME.fullmatch(text)
        if self.secrets > STRINGS and not is_plain and _FINDER.is_valid(text.lower()):
            redacted = GONE
        else:
            redacted = _redacted_short(text) if len(text) < LONG else redact_text(text)
        self.secrets += redacted != text
        self[text] = redacted
        return redacted

    def may_hide(self, string: str) -> bool:
        """Return whether a string of JSON holds a secret, or is the name of one."""
        content = _content(string)
        return _is_secret(content) or is_guarded(content) or self[content] != content


class _Place(NamedTuple):
    """The rules for the members of an object.

    hidden: no member keeps its value. strict: only harmless properties do. naming: a member's name
    says nothing about its object. is_variable: its name is beside its value.
    """

    hidden: bool = False
    strict: bool = False
    naming: bool = False
    is_variable: bool = False


def _redact(value: Any, name: str, place: _Place, strings: _Strings) -> Any:
    """Return the value of a member of that name without secrets."""
    if isinstance(value, dict):
        return _redact_object(value, name, place, strings)
    if isinstance(value, list):
        return _redact_list(value, name, place, strings)
    if value is None or value == "" or isinstance(value, bool):
        return value
    if _is_hidden(name, place) or (is_guarded(name) and is_code(str(value))):
        return GONE
    return strings[value] if isinstance(value, str) else value


def _is_hidden(name: str, place: _Place) -> bool:
    """Return whether a value of that name is hidden, whatever it is."""
    if place.hidden:
        return True
    if place.is_variable and name == "name":
        return False
    return not _is_harmless_property(name) if place.strict else _is_secret(name)


def _redact_object(
    members: dict[str, Any], name: str, around: _Place, strings: _Strings
) -> dict[str, Any]:
    strict = around.strict or name in _PROPERTY_FACETS
    hidden = around.hidden or (not strict and not around.naming and _is_secret(name))
    place = _Place(hidden, strict, name in _NAMING, around.is_variable)
    labels = [members[label] for label in _LABELS if isinstance(members.get(label), str)]
    names_secret = name != _PUBLIC and any(map(_is_secret, labels))
    redacted: dict[str, Any] = {}
    for member, value in members.items():
        is_value = names_secret and member in _LABELLED
        inner = place._replace(hidden=True) if is_value else place
        text = strings[member]
        while text in redacted:  # two hidden names
            text += f" {len(redacted) + 1}"
        redacted[text] = _redact(value, member, inner, strings)
    return redacted


def _redact_list(
    items: list[Any], name: str, place: _Place, strings: _Strings, *, is_inner: bool = False
) -> list[Any]:
    """Return a list that is read like one value of its name, without secrets."""
    if name == _ENVIRONMENT:
        place = place._replace(is_variable=True)
    redacted = []
    is_value = False  # of the option or name before it
    for item in items:
        if isinstance(item, list):
            redacted.append(_redact_list(item, name, place, strings, is_inner=True))
        elif is_value and not isinstance(item, dict) and not str(item).startswith("-"):
            redacted.append(_redact(item, "", _Place(hidden=True), strings))
        else:
            redacted.append(_redact(item, name, place, strings))
        is_pair = len(items) == 2 and not _COLUMNS.search(name)
        is_value = isinstance(item, str) and _is_label(item, is_pair=is_pair, is_inner=is_inner)
    return redacted


def _is_label(item: str, *, is_pair: bool, is_inner: bool) -> bool:
    """Return whether the next item of a list is a secret: an option's, or the other of a pair."""
    if not _is_secret(item):
        return False
    is_name = is_setting(item) or (is_inner and _NAME.fullmatch(item) is not None)
    return _OPTION.fullmatch(item) is not None or (is_pair and is_name)


def _redact_members(text: str, strings: _Strings) -> str:
    """Return a document that cannot be decoded without the secrets of its members."""
    strict = any(name in text for name in _PROPERTY_FACETS)

    def redacted(member: "re.Match[str]") -> str:
        name, value = member["name"], member["value"] or ""
        if value not in ("", '""') and _is_hidden(_content(name), _Place(strict=strict)):
            value = f'"{GONE}"'
        elif value.startswith('"'):
            value = _redact_string(value, strings)
        return _redact_string(name, strings) + (member["colon"] or "") + value

    return _MEMBER.sub(redacted, text)


def _redact_string(string: str, strings: _Strings) -> str:
    """Return a string of JSON without secrets, as it is written if it has none."""
    content = _content(string)
    redacted = strings[content]
    return string if redacted == content else json.dumps(redacted)


def _content(string: str) -> str:
    if "\\" not in string:
        return string[1:].removesuffix('"')
    try:
        content: str = _DECODER.decode(string)
    except ValueError:  # an invalid escape, or one that was cut off
        return string[1:]
    return content


@lru_cache(maxsize=10_000)
def _redacted_short(text: str) -> str:
    """Return a short text without secrets: these come again and again."""
    return redact_text(text)


def _is_secret(name: str) -> bool:
    return name in _PROPERTY_FACETS or is_secret(name)


@lru_cache(maxsize=10_000)
def _is_harmless_property(name: str) -> bool:
    return _HARMLESS_PROPERTY.fullmatch(name) is not None
