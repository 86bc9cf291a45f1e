"""The ways in which settings, shells, logs and code give a secret its value without quotes.

In SQL that would be a column, so there only generated values are secrets. As in `quoted`, each
function looks at one mention and returns the place of its value, or None.
"""

import re

from .mentions import Mention, is_complaint
from .names import ends_as_secret, is_secret
from .prose import QUALITY, spoken
from .values import NUMBER, Value, bare_at, is_code, is_generated, is_mixed, quoted_at, word_at

_FLAGS = re.IGNORECASE | re.ASCII
_BRACES = re.compile(r"\{(?!\{)([^{}\n]*)\}")


def braced(mention: Mention) -> Value | None:
    """Find `PWD={x}` in a connection of ODBC."""
    if mention.is_spaced or mention.before(1) != ";":
        return None
    braces = _BRACES.match(mention.text, mention.at)
    return Value(braces.start(1), braces.end(1), braces.end()) if braces else None


_STARTS_WORD = frozenset("'\"`;:,(&?[{|\\")
_OPTION_START = re.compile(r"(?<!\S)--[\w-]{1,40}=\Z")
_PLACEHOLDER = re.compile(r"[>=]|\{\{|\{[\w.]*\}")  # of a template, or of an f-string
_TOKEN_COLUMN = re.compile(r"(?:\w*[_-])?token_?(?:id|name|ur[il]|endpoint)", _FLAGS)
_IDENTIFIER = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)*", _FLAGS)
# A JSON Web Token is three parts with dots between them, as a column is.
_NO_COLUMN = re.compile(r"\AeyJ|[^.]{40}")


def assigned(mention: Mention) -> Value | None:
    """Find `password=x` without blanks, which is no variable or column."""
    if mention.is_spaced or mention.close or not _stands_alone(mention):
        return None
    if _PLACEHOLDER.match(mention.text, mention.at) or _TOKEN_COLUMN.fullmatch(mention.name):
        return None
    value = bare_at(mention.text, mention.at)
    if value is None or _is_code(mention, value) or _is_column(mention, mention.content(value)):
        return None
    return value


def _is_code(mention: Mention, value: Value) -> bool:
    """Return whether a value is a call, a variable, a member or a count of tokens."""
    content = mention.content(value)
    if content == mention.name or _is_reference(content) or _is_count(mention, content):
        return True
    if not mention.is_strong and content.isdigit() and len(content) < 4:
        return True  # pass=3
    if mention.in_part and mention.name == "token" and not is_generated(content):
        return True
    is_called = mention.text.startswith("(", value.end)
    return is_called and _IDENTIFIER.fullmatch(content) is not None


def _is_column(mention: Mention, content: str) -> bool:
    """Return whether a value may be a column that SQL compares or sets."""
    if mention.name.count(".") > 2 or is_mixed(content):
        return False
    is_name = bool(_IDENTIFIER.fullmatch(content)) and not _NO_COLUMN.search(content)
    if is_name and mention.in_sql and "." in content:
        return True
    if is_generated(content) and not is_name:
        return False
    return _is_in_condition(mention)


def _stands_alone(mention: Mention) -> bool:
    """Return whether the name begins a word; in `/password=1/` it is a part of a path."""
    before = mention.before(1)
    if before == "=":  # --from-literal=password=x
        return _OPTION_START.search(mention.before(50)) is not None
    return not before or before.isspace() or before in _STARTS_WORD


# Words of SQL before a column that is compared or set, alone or in a list, and what ends that part
# of a statement. A line goes on behind such a word, a comma and a bracket.
_GAP = r"(?:[\s(]|--[^\r\n]*[\r\n])*"
_PARTS = re.compile(
    rf"\b(?P<list>SELECT|DISTINCT|SET|PARTITION|BY|WHEN|THEN|ELSE)\b{_GAP}|"
    rf"\b(?P<one>WHERE|ON|AND|OR|XOR|NOT|HAVING|QUALIFY|CASE|PRIOR|RETURN|IF)\b{_GAP}|"
    r"(?P<end>\b(?:FROM|JOIN|WITH|OPTIONS|TABLE|INTO)\b|;|[\r\n](?!\s{0,50},))|"
    rf"(?P<comma>,{_GAP})|(?P<call>(?<=\w)\({_GAP})",
    re.ASCII,
)
_PARTS_IN_ANY_CASE = re.compile(_PARTS.pattern, _FLAGS)


def _is_in_condition(mention: Mention) -> bool:
    """Return whether the name is where SQL compares or sets a column: `ON token=x`.

    Behind another value, a semicolon or the end of a line it is a setting.
    """
    before = mention.before(300)
    word = last = None
    for last in (_PARTS_IN_ANY_CASE if mention.in_sql else _PARTS).finditer(before):
        if last.lastgroup not in ("comma", "call"):
            word = last
    if word is None or last is None or word["end"] or last.end() < len(before):
        return False
    return last.lastgroup != "comma" or word["list"] is not None


def _is_reference(content: str) -> bool:
    """Return whether a value is a member with a secret's name: `self.token`."""
    if "." not in content or not _IDENTIFIER.fullmatch(content) or _NO_COLUMN.search(content):
        return False
    return is_secret(content.rpartition(".")[2])


def _is_count(mention: Mention, content: str) -> bool:
    name = mention.name.lower()
    return "token" in name and name.endswith("s") and content.isdigit()


_IS = re.compile(r"\s+is\s+", re.IGNORECASE)


def guarded(mention: Mention) -> Value | None:
    """Find `otp=x`, `"pin": "x"` and `PIN is x`, with a value that looks like a secret."""
    at = mention.at
    if not mention.sign:
        verb = _IS.match(mention.text, mention.end)
        at = verb.end() if verb else -1
    if mention.in_sql or at < 0 or mention.sign in (",", "::"):
        return None
    value = quoted_at(mention.text, at) or bare_at(mention.text, at)
    return value if value and is_code(mention.content(value).rstrip(".")) else None


_SET = re.compile(r"\bSET\s+\Z", _FLAGS)
_LINE_START = re.compile(r"(?:\A|[\r\n])[ \t]*\Z")
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_QUERY = re.compile(
    r"\b(?:SELECT|UPDATE|MERGE|WHERE|FROM|JOIN|INSERT|SET|ON|AND|OR|WHEN|CREATE|TABLE|CASE)\b",
    _FLAGS,
)


def setting(mention: Mention) -> Value | None:
    """Find `SET a.b.password = x`, and `password = x` in a line or generated, outside of SQL."""
    value = word_at(mention.text, mention.at)
    if value is None or not mention.is_strong or mention.close:
        return None
    if _is_set(mention):
        return value
    if not mention.is_spaced or mention.in_sql or _QUERY.search(mention.before(300)):
        return None
    if mention.in_part:  # in SQL a literal may compare a column
        return value if is_mixed(mention.content(value)) else None
    if _LINE_START.search(mention.before(20)):
        return value if _LINE_END.match(mention.text, value.after) else None
    return value if _is_generated_word(mention, value) else None


def _is_set(mention: Mention) -> bool:
    """Return whether `SET` stands before a name with two dots, as no column has."""
    return mention.name.count(".") >= 2 and _SET.search(mention.before(20)) is not None


def _is_generated_word(mention: Mention, value: Value) -> bool:
    """Return whether a value was generated, and is neither a variable nor a call."""
    content = mention.content(value)
    if "_" in content or mention.text.startswith("(", value.after):
        return False
    return is_generated(content)


# What follows a name that has a type, or nothing.
_NO_VALUE = re.compile(
    r"(?:str|string|(?:var|nvar)?char2?|text|(?:big|small|tiny)?int|integer|long|double|float|"
    r"decimal|numeric|bool|boolean|bytes?|binary|date|timestamp|array|map|struct|list|dict|any|"
    r"optional|none|null|true|false|secretstr)\b",
    _FLAGS,
)
# Of an exception: a.b.InvalidToken
_CLASS = re.compile(r"(?:[a-z]\w*\.){2,}[A-Z]+[a-z]\w*", re.ASCII)
# secret: mounted at /etc; but password: broken wing
_GOES_ON = re.compile(
    r" (?:at|by|in|on|for|from|to|of|with|without|and|or|as|is|was|since|before|after|until|when|"
    r"if|because|but|yesterday|again)(?=[\s.,]|\Z)"
)
# No such secret: projects/bank/secrets/db
_PLACED = re.compile(r"(?:secret|credential)s?", _FLAGS)
_PATH = re.compile(r"[a-z][a-z_.-]*(?:/[a-z_.-]+)+")


def stated(mention: Mention) -> Value | None:
    """Find `password: x` of YAML, headers and logs.

    A column with its type, a parser's complaint about a token and an exception's class stay.
    """
    if mention.close or not _stands_alone(mention):
        return None
    if _NO_VALUE.match(mention.text, mention.at) or _CLASS.fullmatch(mention.name):
        return None
    value = word_at(mention.text, mention.at)
    if value is None:
        return None
    content = mention.content(value)
    if not mention.is_strong:  # pass: x
        is_pass = mention.name.lower().endswith("pass") and not mention.in_sql
        return value if is_pass and is_generated(content) else None
    if is_complaint(mention) or mention.in_query:
        return value if is_generated(content) else None
    if mention.blank or not mention.gap or not ends_as_secret(mention.name):
        return value if is_mixed(content) else None
    if content == mention.name or _is_reference(content):
        return None
    if _PLACED.fullmatch(mention.name) and _PATH.fullmatch(content):
        return None
    if QUALITY.fullmatch(content) and _GOES_ON.match(mention.text, value.end):
        return None
    return None if _is_count(mention, content) else value


_BLOCK = re.compile(r"[|>][+-]?[ \t]*\r?\n[ \t]+(?P<value>\S[^\r\n]*(?:\r?\n[ \t]+\S[^\r\n]*)*)")


def block(mention: Mention) -> Value | None:
    """Find the lines of a block of YAML: `password: >-` and a line below it."""
    if not mention.is_strong or mention.in_sql:
        return None
    lines = _BLOCK.match(mention.text, mention.at)
    return Value(lines.start("value"), lines.end(), lines.end()) if lines else None


_COOKIE_HEADER = re.compile(r"(?:set-)?cookie", re.IGNORECASE)
# One entry of a dictionary, with its value if that is a variable
_COOKIE_ENTRY = re.compile(
    r"\s*[{,]\s*\\*['\"][\w.-]{1,100}\\*['\"]\s*:\s*(?:[^\s'\"\\,{}][^'\"\\,{}]*(?=,))?"
)
_COOKIES = re.compile(r"[^\s'\"][^\r\n'\"]*")


def cookies(mention: Mention) -> Value | None:
    """Find the line behind `Cookie:`, or the header's value in quotes."""
    if not mention.name.lower().endswith("cookie"):
        return None
    if _COOKIE_HEADER.fullmatch(mention.name) and mention.close:
        return quoted_at(mention.text, mention.at)
    line = _COOKIES.match(mention.text, mention.at)
    return Value(mention.at, line.end(), line.end()) if line else None


def cookie_entries(mention: Mention) -> list[Value]:
    """Find the values in `cookies={"lang": "x", "session": "x"}`.

    Cookies by another name may be biscuits: there only values of letters and digits are chosen.
    """
    text, at = mention.text, mention.at
    if not text.startswith("{", at):
        return []
    is_certain = mention.name.lower().rpartition(".")[2] == "cookies"
    values = []
    while entry := _COOKIE_ENTRY.match(text, at):
        value = quoted_at(text, entry.end())
        if value and (is_certain or is_mixed(mention.content(value))):
            values.append(value)
        at = value.after if value else entry.end()
    return values


def number(mention: Mention) -> Value | None:
    """Find a number in a JSON object."""
    if not mention.is_strong or not mention.close.endswith('"'):
        return None
    number = NUMBER.match(mention.text, mention.at)
    return Value(mention.at, number.end(), number.end()) if number else None


def mapped(mention: Mention) -> Value | None:
    """Find an entry of a map as Scala prints it, `password -> x`, which is no lambda."""
    if not mention.is_strong or mention.close or (mention.in_query and not mention.is_spaced):
        return None
    has_dots = mention.name.count(".") > 1
    if not has_dots and not ends_as_secret(mention.name):
        return None
    value = word_at(mention.text, mention.at)
    if value is None or mention.text.startswith(f"{mention.name} ", mention.at):
        return None
    content = mention.content(value)
    if not has_dots and mention.sign == "=>" and not is_mixed(content):
        return None  # token => upper(token)
    if not mention.is_spaced and not is_generated(content):
        return None
    is_call = "token" in mention.name and mention.text.startswith("(", value.after)
    return None if is_call else value


def option(mention: Mention) -> Value | None:
    """Find the value of a command's option, `--password x`, and of a line `a.b.secret.key x`."""
    if not mention.is_strong or not mention.blank or not _stands_alone(mention):
        return None
    value = word_at(mention.text, mention.at)
    if value is None:
        return None
    if mention.name.startswith("-") and "." not in mention.name:
        return value
    is_property = mention.name.count(".") >= 2 and ends_as_secret(mention.name)
    if mention.in_sql or not is_property or _CLASS.fullmatch(mention.name):
        return None
    is_line = _LINE_START.search(mention.before(20)) and _LINE_END.match(mention.text, value.after)
    return spoken(mention, value, is_whole=bool(is_line))
