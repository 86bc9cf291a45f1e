"""The value that stands at a place of a text.

Where it starts and ends, quoted in any of the ways of SQL, JSON and code.

Each reader starts at one place, reads on to the end of the value and never back, and no two read
the same part of a text.
"""

import re
from typing import NamedTuple


class Value(NamedTuple):
    """A value at text[start:end], without its quotes; `after` is behind them."""

    start: int
    end: int
    after: int


# MySQL's function; N'..' of SQL Server, E'..' of PostgreSQL
_PREFIX = re.compile(r"(?:PASSWORD\s*\(\s*)?(?:[NEXBRF]|U&)?(?=\\*['\"$])", re.IGNORECASE)
_OPENING = re.compile(r"(?P<slashes>\\*)(?P<quote>['\"])|(?P<dollars>\$\w{0,60}\$)")
# a JSON's quotes in a JSON's string in a JSON's string: one backslash, one level deeper three, then
# seven
_DEEPEST = 63
_CONTENT = {
    "'": re.compile(r"(?:[^'\\]+|\\[\s\S]|'')*"),
    '"': re.compile(r'(?:[^"\\]+|\\[\s\S])*'),
}
_ESCAPED = {quote: re.compile(rf"(\\*){quote}") for quote in "'\""}
_BARE = re.compile(r"(?:[^\s'\",;()&\\]|\\(?!\\{0,63}[\"']))+")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Digest|Token|ApiKey|Negotiate|SharedKey)\s+(?=[\w+/.~\[-])", re.IGNORECASE
)
_HARMLESS = re.compile(
    r"yes|no|true|false|null|none|y|n|t|f|on|off|[01?]|\*+|(?:en|dis)abled|(?:in)?active|(?:in)?valid|expired|revoked|pending|"
    r"unknown|missing|required|optional|default|masked|hidden|set|unset|"
    r":\w{1,60}|\$\d{1,3}|%s|%\(\w{1,60}\)s|\$\{\w{1,60}\}|\{\{[^{}'\"]{1,60}(?:'[\w.-]{1,60}'|\"[\w.-]{1,60}\")?[^{}'\"]{0,60}\}\}",
    re.IGNORECASE | re.ASCII,
)


def is_harmless(value: str) -> bool:
    """Whether a value tells nothing under any name: a flag, or where the real one will stand.

    >>> is_harmless("yes"), is_harmless(":password"), is_harmless("{{ env_var('DB_PASSWORD') }}"), is_harmless("hunter2")
    (True, True, True, False)
    """
    return len(value) <= 200 and _HARMLESS.fullmatch(value) is not None


def quoted_at(text: str, at: int) -> Value | None:
    """The quoted value that begins there, with its prefix.

    One that does not end goes on to the end of the text.

    >>> text = "N'it''s', x"
    >>> text[slice(*quoted_at(text, 0)[:2])]
    "it''s"
    """
    if prefix := _PREFIX.match(text, at):
        at = prefix.end()
    found = _OPENING.match(text, at)
    if found is None:
        return None
    if found["dollars"]:
        return _until(text, found.end(), found["dollars"])
    slashes, quote = found["slashes"], found["quote"]
    if len(slashes) > _DEEPEST:
        return None
    if text.startswith((slashes + quote) * 2, found.end()) and (
        tripled := _tripled(text, found.end(), slashes + quote)
    ):
        return tripled
    return (
        _escaped(text, found.end(), slashes, quote) if slashes else _plain(text, found.end(), quote)
    )


def _tripled(text: str, at: int, mark: str) -> Value | None:
    """A text between three quotes each; `'''a'` is SQL's as well."""
    start = at + 2 * len(mark)
    if mark == "'" and text.find("'''", start) < 0:
        return None
    return _until(text, start, mark * 3)


def _until(text: str, start: int, closing: str) -> Value:
    end = text.find(closing, start)
    return Value(start, len(text), len(text)) if end < 0 else Value(start, end, end + len(closing))


def _plain(text: str, start: int, quote: str) -> Value:
    found = _CONTENT[quote].match(text, start)
    end = found.end() if found else start
    if end < len(text) and text[end] == "\\":
        end += 1  # the last sign of the text
    return Value(start, end, min(end + 1, len(text)))


def _escaped(text: str, start: int, slashes: str, quote: str) -> Value:
    for found in _ESCAPED[quote].finditer(text, start):
        if len(found[1]) <= len(slashes):
            return Value(start, found.start(), found.end())
    return Value(start, len(text), len(text))


class BareValues:
    """The values without quotes of one text.

    What stands together is read once, however many mentions are in it.
    """

    __slots__ = ("_bracket", "_end", "_last", "_start", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = self._last = self._bracket = -1

    def at(self, at: int) -> Value | None:
        """The value that begins there, behind the word that says how it is encoded.

        Without closing brackets.

        >>> text = "Bearer abc}, x"
        >>> text[slice(*BareValues(text).at(0)[:2])]
        'abc'
        """
        if scheme := _SCHEME.match(self._text, at):
            at = scheme.end()
        if not self._start <= at < self._end and not self._read(at):
            return None
        end = self._end if self._bracket >= at else self._last
        return Value(at, end, end) if end > at else None

    def _read(self, at: int) -> bool:
        """Note what stands together there.

        Its end, its end without closing brackets, and its last opening one.
        """
        found = _BARE.match(self._text, at)
        if found is None:
            return False
        self._start, self._end = found.span()
        self._last = at + len(found[0].rstrip("]}>"))
        self._bracket = max(self._text.rfind(one, at, self._end) for one in "[{")
        return True
