"""The value at a place of a text: its start and end, in the quotes of SQL, JSON and code."""

import re
from typing import NamedTuple


class Value(NamedTuple):
    """A value at text[start:end] without its quotes; `after` is behind them."""

    start: int
    end: int
    after: int


# N'..' of SQL Server, E'..' of PostgreSQL, f'..' of Python, @".." of C#, PASSWORD('..') of MySQL
_PREFIX = re.compile(
    r"(?:(?:PASSWORD|MD5|SHA\d*|(?:BCRYPT|ARGON2|HASH)\w{0,20}|CRYPT|SECRETSTR|SECRET)\s*\(\s*){0,3}"
    r"(?:[NEXBRF@]|U&?)?(?=\\*['\"$])",
    re.IGNORECASE,
)
_OPENING = re.compile(r"(?P<slashes>\\*)(?P<quote>['\"])|(?P<dollars>\$\w{0,60}\$)")
# JSON in a JSON string: one backslash before a quote, one level deeper three, then seven
_DEEPEST = 63
_CONTENT = {
    "'": re.compile(r"(?:[^'\\]+|\\[\s\S]|'')*"),
    '"': re.compile(r'(?:[^"\\]+|\\[\s\S])*'),
}
_ESCAPED = {quote: re.compile(rf"(\\*){quote}") for quote in "'\""}
# A quoted text; one that does not end goes on to the end.
QUOTED = r"(?:'(?:[^'\\]+|\\[\s\S]|'')*(?:'|\\?\Z)|\"(?:[^\"\\]+|\\[\s\S])*(?:\"|\\?\Z))"

_BARE = r"[^\s'\",;()&\\]|\\(?!\\{0,63}[\"'])"
_READ = 1000  # characters of a bare value that are read before it is accepted
_SHORT = re.compile(rf"(?:{_BARE}){{1,{_READ}}}")
_REST = re.compile(rf"(?:{_BARE})*")
_STARTS_WORD = re.compile(r"[^\s'\",;()&{}\[\]<>|=-]")
NUMBER = re.compile(r"-?\d[\w.+-]*")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Digest|Token|ApiKey|Negotiate|SharedKey|OAuth|JWT|Splunk|GenieKey)\s+"
    r"(?=[\w+/.~\[-])",
    re.IGNORECASE,
)

_LONGEST_HARMLESS = 200
_HARMLESS = re.compile(
    # flags
    r"yes|no|true|false|null|none|y|n|t|f|on|off|[01?]|(?:en|dis)abled|(?:in)?active|"
    r"(?:in)?valid|expired|revoked|pending|unknown|missing|required|optional|default|set|unset|"
    r"granted|denied|failed|kerberos|gssapi|ldap|scram-sha-\d{1,3}|"
    # masks and placeholders
    r"\*+|[\[<(]?(?:masked|hidden)[\])>]?|!(?:vault|secret|ref|sub|env)|:\w{1,60}|\$\d{1,3}|%s|%\(\w{1,60}\)s|\$\{\w{1,60}\}|"
    r"\{\{[^{}'\"]{1,60}(?:'[\w.-]{1,60}'|\"[\w.-]{1,60}\")?[^{}'\"]{0,60}\}\}|"
    # patterns
    r"%|\(?(?:\[(?:\^|[A-Za-z0]-|\\)|\\{1,4}[sSwWdD][+*{]|\.[*+])[\s\S]{0,60}",
    re.IGNORECASE | re.ASCII,
)
_MIXED = re.compile(r"(?=[^\d]*\d)(?=[\W\d_]*[^\W\d_])(?:[^\W_]|[!#$%^&*~+])+")
_BASE64 = re.compile(r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^\d]*\d)[A-Za-z0-9+/=]{16,}")


def is_harmless(value: str) -> bool:
    """Return whether a value says nothing under any name: a flag, or a placeholder.

    >>> is_harmless("yes"), is_harmless(":password"), is_harmless("{{ env_var('DB_PASSWORD') }}")
    (True, True, True)
    >>> is_harmless("hunter2")
    False
    """
    return len(value) <= _LONGEST_HARMLESS and _HARMLESS.fullmatch(value) is not None


def is_generated(content: str) -> bool:
    """Return whether a word has what no word of a language has.

    >>> is_generated("hunter2"), is_generated("p@ss"), is_generated("missing")
    (True, True, False)
    """
    if len(content) < 4:
        return False
    if any(sign in content for sign in "@#$%^*+=~!"):
        return True
    letters = sum(map(str.isalpha, content))
    digits = sum(map(str.isdigit, content))
    if digits:
        return letters > 0 or digits == len(content) >= 6
    return letters == len(content) >= 16


def is_mixed(content: str) -> bool:
    """Return whether a word mixes letters and digits as passwords and keys do, not as names do.

    >>> is_mixed("hunter2"), is_mixed("Tr0ub4dor&3"), is_mixed("wJalrXUtnFEMI/K7MDENG")
    (True, True, True)
    >>> is_mixed("db-host1"), is_mixed("table_1"), is_mixed("api/v2")
    (False, False, False)
    """
    if _BASE64.fullmatch(content):
        return True
    return len(content) >= 6 and _MIXED.fullmatch(content) is not None


def is_code(content: str) -> bool:
    """Return whether a word may be a PIN, a code or a password.

    >>> is_code("4711"), is_code("hunter2"), is_code("13"), is_code("Erlang/OTP")
    (True, True, False, False)
    """
    return is_mixed(content) or (len(content) >= 4 and content.isdigit())


def quoted_at(text: str, at: int) -> Value | None:
    """Return the quoted value that begins there, with or without a prefix.

    A value without a closing quote goes on to the end of the text.

    >>> text = "N'it''s', x"
    >>> text[slice(*quoted_at(text, 0)[:2])]
    "it''s"
    """
    if prefix := _PREFIX.match(text, at):
        at = prefix.end()
    opening = _OPENING.match(text, at)
    if opening is None:
        return None
    start = opening.end()
    if opening["dollars"]:
        return _until(text, start, opening["dollars"])
    slashes, quote = opening["slashes"], opening["quote"]
    if len(slashes) > _DEEPEST:
        return None
    mark = slashes + quote
    if text.startswith(mark * 2, start):  # three quotes; `'''a'` is SQL's as well
        tripled = _until(text, start + 2 * len(mark), mark * 3)
        if tripled.end < len(text) or mark != "'":
            return tripled
    return _escaped(text, start, slashes, quote) if slashes else _plain(text, start, quote)


def bare_at(text: str, at: int) -> Value | None:
    """Return the value without quotes that begins there, without a scheme and closing brackets.

    Only the beginning of a very long one is read: `whole` adds the rest to an accepted value.

    >>> text = "Bearer abc}, x"
    >>> text[slice(*bare_at(text, 0)[:2])]
    'abc'
    """
    if scheme := _SCHEME.match(text, at):
        at = scheme.end()
    run = _SHORT.match(text, at)
    if run is None:
        return None
    value = run[0]
    if "[" not in value and "{" not in value:
        value = value.rstrip("]}>")
    end = at + len(value)
    return Value(at, end, end) if value else None


def word_at(text: str, at: int) -> Value | None:
    """Return the value without quotes that begins there, unless it begins with a sign."""
    return bare_at(text, at) if _STARTS_WORD.match(text, at) else None


def whole(text: str, value: Value) -> Value:
    """Return a value with all of its characters, if `bare_at` read only its beginning."""
    if value.after != value.end or value.end - value.start < _READ:
        return value
    rest = _REST.match(text, value.end)
    end = rest.end() if rest else value.end
    return Value(value.start, end, end)


def _until(text: str, start: int, closing: str) -> Value:
    end = text.find(closing, start)
    if end < 0:
        return Value(start, len(text), len(text))
    return Value(start, end, end + len(closing))


def _escaped(text: str, start: int, slashes: str, quote: str) -> Value:
    for closing in _ESCAPED[quote].finditer(text, start):
        if len(closing[1]) <= len(slashes):
            return Value(start, closing.start(), closing.end())
    return Value(start, len(text), len(text))


def _plain(text: str, start: int, quote: str) -> Value:
    content = _CONTENT[quote].match(text, start)
    end = content.end() if content else start
    if text.startswith("\\", end):  # the last character of the text
        end += 1
    return Value(start, end, min(end + 1, len(text)))
