"""The ways in which shells, connections, settings, logs and prose give a secret its value.

The value has no quotes. In SQL that would be a column, so a value that is called like one stays
where the text compares or assigns columns. As in `quoted_values`, each function returns the place
of a mention's value, or None.
"""

import re

from .mentions import Mention
from .names import ENDING_NAME, SECRET_NAME
from .values import Value, bare_at, is_generated, quoted_at

_FLAGS = re.IGNORECASE | re.ASCII
_CONDITION = re.compile(r"\b(?:ON|AND|OR|WHERE|SET|WHEN|PARTITION)\s+\(?\Z", _FLAGS)
_COLUMN = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)+", _FLAGS)
_IDENTIFIER = re.compile(r"[a-z_]\w*", _FLAGS)
# A JSON Web Token is three parts with dots between them, as a column is.
_GENERATED = re.compile(r"\AeyJ|[^.]{40}")
_MIXED = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{6,}")
_STATEMENT = re.compile(r"\b(?:SET|ON|WHERE)\s", _FLAGS)
_TOKEN_COLUMN = re.compile(r"(?:\w*[_-])?token_?(?:id|name|ur[il]|endpoint)", _FLAGS)
_STARTS_WORD = frozenset("'\"`;:,(&?[{|\\")
_OPTION_START = re.compile(r"(?<!\S)--[\w-]{1,40}=\Z")
_STARTS_VALUE = re.compile(r"[^\s'\",;()&{}\[\]<>|=-]")


def _stands_alone(mention: Mention) -> bool:
    """Return whether the name begins a word; in `/password=1/` it is a part of a path."""
    before = mention.before(1)
    if before == "=":  # --from-literal=password=x
        return _OPTION_START.search(mention.before(50)) is not None
    return not before or before.isspace() or before in _STARTS_WORD


def _value_of(mention: Mention) -> Value | None:
    if not _STARTS_VALUE.match(mention.text, mention.at):
        return None
    return bare_at(mention.text, mention.at)


def _content(mention: Mention, value: Value) -> str:
    return mention.text[value.start : min(value.end, value.start + 200)]


def _is_column(content: str) -> bool:
    return _COLUMN.fullmatch(content) is not None and not _GENERATED.search(content)


def _is_column_of_secrets(content: str) -> bool:
    return _is_column(content) and SECRET_NAME.search(content.rpartition(".")[2]) is not None


def _is_word(content: str) -> bool:
    return _IDENTIFIER.fullmatch(content) is not None and not _MIXED.fullmatch(content)


_BRACES = re.compile(r"\{(?!\{)([^{}\n]*)\}")


def braced(mention: Mention) -> Value | None:
    """Find `PWD={x}` in a connection of ODBC."""
    if mention.sign != "=" or not mention.strength or mention.is_spaced:
        return None
    if mention.before(1) != ";":
        return None
    braces = _BRACES.match(mention.text, mention.at)
    return Value(braces.start(1), braces.end(1), braces.end()) if braces else None


_PLACEHOLDER = re.compile(r"\{\{|\{[\w.]*\}")  # of a template, or of an f-string


def assigned(mention: Mention) -> Value | None:
    """Find `password=x` without blanks, where the name has no dots."""
    if mention.sign != "=" or not mention.strength or mention.is_spaced or mention.close:
        return None
    if "." in mention.name or not _stands_alone(mention):
        return None
    if mention.text.startswith((">", "="), mention.at):
        return None
    if _PLACEHOLDER.match(mention.text, mention.at):
        return None
    value = bare_at(mention.text, mention.at)
    if value is None:
        return None
    content = _content(mention, value)
    name = mention.name.lower()
    is_condition = _CONDITION.search(mention.before(20)) is not None
    if content == mention.name or _TOKEN_COLUMN.fullmatch(name):
        return None
    if "token" in name and content.isdigit() and (name.endswith("s") or is_condition):
        return None
    if _is_column_of_secrets(content):
        return None
    if is_condition and (_is_column(content) or _is_word(content)):
        return None
    return value


def assigned_property(mention: Mention) -> Value | None:
    """Find `a.b.password=x` without blanks, which is no column that SQL compares or assigns."""
    if mention.sign != "=" or not mention.strength or mention.is_spaced or mention.close:
        return None
    if "." not in mention.name or not _stands_alone(mention):
        return None
    if mention.text.startswith((">", "="), mention.at):
        return None
    value = bare_at(mention.text, mention.at)
    if value is None:
        return None
    content = _content(mention, value)
    dots = mention.name.count(".")
    if _is_column_of_secrets(content):
        return None
    if dots == 1 and _is_column(content) and _STATEMENT.search(mention.before(100)):
        return None
    if dots <= 2 and _is_word(content) and _STATEMENT.search(mention.before(100)):
        return None
    return value


_SET = re.compile(r"\bSET\s+\Z", _FLAGS)


def set_statement(mention: Mention) -> Value | None:
    """Find `SET a.b.password = x`, which is no column that an UPDATE sets."""
    if mention.sign != "=" or not mention.strength or mention.name.count(".") < 2:
        return None
    return _value_of(mention) if _SET.search(mention.before(20)) else None


_LINE_START = re.compile(r"(?:\A|[\r\n])[ \t]*\Z")
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_QUERY = re.compile(
    r"\b(?:SELECT|UPDATE|MERGE|WHERE|FROM|JOIN|INSERT|SET|ON|AND|OR|WHEN|CREATE|TABLE|CASE)\b",
    _FLAGS,
)


def configured_line(mention: Mention) -> Value | None:
    """Find `password = x` in a line of its own, or with a generated value, outside of SQL."""
    if mention.sign != "=" or not mention.is_strong or not mention.is_spaced or mention.close:
        return None
    if mention.place or _QUERY.search(mention.before(300)):
        return None
    value = _value_of(mention)
    if value is None:
        return None
    if _LINE_START.search(mention.before(20)):
        return value if _LINE_END.match(mention.text, value.after) else None
    is_call = mention.text.startswith("(", value.after)
    content = _content(mention, value)
    return value if is_generated(content) and not is_call and "_" not in content else None


# What follows a name that has a type, or nothing.
_NO_VALUE = re.compile(
    r"(?:str|string|(?:var|nvar)?char|text|(?:big|small|tiny)?int|integer|long|double|float|"
    r"decimal|numeric|bool|boolean|bytes?|binary|date|timestamp|array|map|struct|list|dict|any|"
    r"optional|none|null|true|false)\b",
    _FLAGS,
)
# Of an exception: a.b.InvalidToken
_CLASS = re.compile(r"(?:[a-z]\w*\.){2,}[A-Z]+[a-z]\w*", re.ASCII)


def stated(mention: Mention) -> Value | None:
    """Find `password: x` of YAML, headers and logs.

    A column with its type, a parser's complaint about a token and an exception's class stay.
    """
    if mention.sign != ":" or not mention.is_strong or mention.blank or mention.close:
        return None
    if not _stands_alone(mention):
        return None
    value = _value_of(mention)
    if value is None or _NO_VALUE.match(mention.text, mention.at):
        return None
    if _CLASS.fullmatch(mention.name):
        return None
    content = _content(mention, value)
    if mention.is_complaint:
        return value if is_generated(content) else None
    if not ENDING_NAME.search(mention.name) or not mention.gap:
        return value if _MIXED.fullmatch(content) else None
    if mention.place and not is_generated(content):
        return None
    if _is_column_of_secrets(content) or content == mention.name:
        return None
    is_count = "token" in mention.name.lower() and mention.name[-1] in "sS" and content.isdigit()
    return None if is_count else value


def mapped(mention: Mention) -> Value | None:
    """Find an entry of a map as Scala prints it, `password -> x`, which is no lambda."""
    if mention.sign not in ("->", "=>") or not mention.is_strong:
        return None
    if mention.close or (not mention.is_spaced and mention.place):
        return None
    has_dots = mention.name.count(".") > 1
    if mention.sign == "=>" and not has_dots:
        return None  # a function: token => upper(token)
    if not has_dots and not ENDING_NAME.search(mention.name):
        return None
    value = _value_of(mention)
    if value is None or mention.text.startswith(f"{mention.name} ", mention.at):
        return None
    if not mention.is_spaced and not is_generated(_content(mention, value)):
        return None
    is_call = "token" in mention.name and mention.text.startswith("(", value.after)
    return None if is_call else value


def option(mention: Mention) -> Value | None:
    """Find the value of a command's option: `--password x`."""
    if mention.sign or not mention.is_strong or not mention.blank or "." in mention.name:
        return None
    if not mention.text.startswith("-", mention.start) or not _stands_alone(mention):
        return None
    return _value_of(mention)


_IDENTIFIED = re.compile(
    r"\s+(?:WITH\s+\S+\s+)?BY(?:\s+(?:PASSWORD|VALUES))?['\"`]?(?:\s*(?:=>?|:)\s*|\s+)",
    re.IGNORECASE,
)


def identified(mention: Mention) -> Value | None:
    """Find the password of `IDENTIFIED BY x`."""
    if mention.sign or mention.name.upper() != "IDENTIFIED":
        return None
    words = _IDENTIFIED.match(mention.text, mention.end)
    if words is None:
        return None
    quoted = quoted_at(mention.text, words.end())
    if quoted is None and mention.name == "IDENTIFIED":
        return bare_at(mention.text, words.end())
    return quoted


def property_line(mention: Mention) -> Value | None:
    """Find the value behind a property's name, as in spark-defaults: `a.b.secret.key x`."""
    if mention.sign or not mention.is_strong or not mention.blank or mention.place == "sql":
        return None
    if mention.name.count(".") < 2 or not ENDING_NAME.search(mention.name):
        return None
    if not _stands_alone(mention) or _CLASS.fullmatch(mention.name):
        return None
    value = _value_of(mention)
    if value is None:
        return None
    is_line = _LINE_START.search(mention.before(20)) and _LINE_END.match(mention.text, value.after)
    return _spoken(mention, value, is_whole=bool(is_line))


_SAYS = re.compile(
    r"['\"]?(?:\s{1,5}(?:for|of)(?:\s{1,5}[\w@.'\"-]{1,100}){1,3}?|\s{1,5}value)?"
    r"\s{1,5}(?:(?:is|was|are|equals|reads)(?:\s{1,5}(?:now|(?:re)?set\s{1,5}to|changed\s{1,5}to))?|"
    r"ha[sd]\s{1,5}value|(?:provided|given|used|supplied)(?=\s{0,5}:))\s{0,5}:?\s{1,5}",
    re.IGNORECASE,
)


def said(mention: Mention) -> Value | None:
    """Find `the password is x` and `log in with password x` in prose."""
    if mention.sign or not mention.is_strong or mention.place == "sql":
        return None
    if not mention.blank or not ENDING_NAME.search(mention.name):
        return None
    verb = _SAYS.match(mention.text, mention.end)
    at = verb.end() if verb else mention.at
    quoted = quoted_at(mention.text, at) if verb else None
    if quoted:
        return quoted
    if mention.close:
        return None
    if not verb and mention.text.startswith("(", at):
        at += 1
    value = bare_at(mention.text, at) if _STARTS_VALUE.match(mention.text, at) else None
    if value is None:
        return None
    if verb:
        return _spoken(mention, value, is_whole=_is_last(mention.text, value))
    content = _content(mention, value).rstrip(".:!?")
    if len(content) < 6 or _SNAKE_CASE.fullmatch(content):
        return None
    return _spoken(mention, value, is_whole=False)


_SNAKE_CASE = re.compile(r"[a-z]+(?:_[a-z0-9]+)+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"\s*(?:[.,;:!?)\]\r\n]|\Z)")
_KNOWN_FORMAT = re.compile(
    r"(?:sha-?\d+|md5|base64|utf-?\d+|[hre]s\d{3}|oauth2?|v?\d+(?:\.\d+)*|\d+[-a-z]{1,8}|https?|"
    r"\d{4}-\d\d-\d\d.*)",
    re.IGNORECASE,
)
# Adjectives and participles, which say how a secret is.
_QUALITY = re.compile(
    r"[a-z]*(?:ed|ing|[ai]ble|ful|less|ent|ant|ive|al|ous|id|ect|ory|ary|own|en|ak|ly|ort|ong)|"
    r"set|it|gone|here|there|same|ok|bad|old|new|null|none|true|false|empty|safe|unsafe|secure|"
    r"insecure|unique|open|stale|blank|late|not|no|yes|a|an|the|too|so|mine|yours|lost|sent|"
    r"reset|unset|read|kept|stolen|fine|good|right|up|out|in|on|off|public|private|secret|case|"
    r"static|dynamic|plain|text|token|password|key|string|needed|must|should|for|of|by|from|with",
    re.IGNORECASE,
)


def _is_last(text: str, value: Value) -> bool:
    return text[value.end - 1] in ".!?" or _SENTENCE_END.match(text, value.end) is not None


def _spoken(mention: Mention, value: Value, *, is_whole: bool) -> Value | None:
    """Return the value without its full stop, unless it is a common word.

    `is_whole`: nothing follows in the sentence, so a word of letters may be the secret too.
    """
    content = _content(mention, value)
    stripped = content.rstrip(".:!?")
    end = value.end - (len(content) - len(stripped) if value.end - value.start < 200 else 0)
    if not stripped or _KNOWN_FORMAT.fullmatch(stripped):
        return None
    is_word = is_whole and len(stripped) >= 4 and not _QUALITY.fullmatch(stripped)
    if not is_word and not is_generated(stripped):
        return None
    return Value(value.start, end, value.after)
