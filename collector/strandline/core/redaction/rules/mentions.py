"""Mentions of secrets: a name in a text, and the sign behind it."""

import re
from typing import NamedTuple

from .names import LONGEST, SHORT_WORDS, WORDS, ends_as_secret, has_short_word, strength_of
from .sql import Outline
from .values import Value

_WORD_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789_.-"
_LONG_WORDS = re.compile("|".join(WORDS))
_ALL_WORDS = re.compile("|".join([*WORDS, SHORT_WORDS]), re.ASCII)
_WORD = re.compile(r"[\w.-]*", re.ASCII)
_TAIL = re.compile(
    r"(?P<close>\\{0,63}['\"`])?(?:\s*\]|(?<=['\"])\))?(?P<blank>\s*)"
    r"(?P<sign>===?|=>|=|:=|::|:|->|,|\.{2,})?(?P<gap>\s*)"
)
_OTHER_NAMES = ("identified", "cookie")  # with forms of their own


class Mention(NamedTuple):
    """A name at text[start:end] that may be a secret's.

    `name` is the end of it, if it is long; `strength` is that of `strength_of`. `close` is the
    quote behind the name and `sign` what follows it; `blank` and `gap` are before and behind the
    sign. A value would begin at text[at]. `in_part`: in a literal or comment of SQL.
    """

    text: str
    start: int
    end: int
    name: str
    strength: str
    in_sql: bool
    in_part: bool
    close: str
    sign: str
    blank: str
    gap: str
    at: int

    def before(self, length: int) -> str:
        """Return the characters before the name."""
        return self.text[max(0, self.start - length) : self.start]

    def content(self, value: Value) -> str:
        """Return the beginning of a value."""
        return self.text[value.start : min(value.end, value.start + LONGEST)]

    @property
    def is_strong(self) -> bool:
        """Return whether the name is one of a secret behind any sign."""
        return self.strength == "strong"

    @property
    def in_query(self) -> bool:
        """Return whether the name is in SQL, or in a literal or comment of it."""
        return self.in_sql or self.in_part

    @property
    def is_spaced(self) -> bool:
        """Return whether there are blanks before or after the sign."""
        return bool(self.blank or self.gap)


def words_of(outline: Outline) -> re.Pattern[str]:
    """Return the pattern of the words to look for in a text: the short ones take longer."""
    return _ALL_WORDS if has_short_word(outline.text) else _LONG_WORDS


def next_mention(text: str, outline: Outline, at: int, words: re.Pattern[str]) -> Mention | None:
    """Return the next name of a secret from a place on, found by its words."""
    lowered = outline.text
    word = words.search(lowered, at)
    while word:
        start = _start_of_word(lowered, word.start(), at)
        if start == word.start() and word[0] == "key" and start > at and lowered[start - 1] == " ":
            start = _start_of_word(lowered, start - 1, at)  # secret key
        end = _end_of_word(lowered, word.end())
        if lowered.startswith(" key", end) and ends_as_secret(f"{lowered[start:end][-20:]} key"):
            end = _end_of_word(lowered, end + 4)
        name = text[max(start, end - LONGEST) : end]
        strength = strength_of(name)
        if strength or any(other in name.lower() for other in _OTHER_NAMES):
            return _mention(text, start, end, strength, outline)
        word = words.search(lowered, end)
    return None


def _mention(text: str, start: int, end: int, strength: str, outline: Outline) -> Mention:
    tail = _TAIL.match(text, end)
    assert tail is not None  # each of its parts may be empty
    return Mention(
        text,
        start,
        end,
        name=text[max(start, end - LONGEST) : end],
        strength=strength,
        in_sql=outline.sql <= start,
        in_part=outline.is_part,
        close=tail["close"] or "",
        sign=tail["sign"] or "",
        blank=tail["blank"],
        gap=tail["gap"],
        at=tail.end(),
    )


def _start_of_word(lowered: str, at: int, least: int) -> int:
    before = lowered[max(least, at - LONGEST) : at]
    return at - len(before) + len(before.rstrip(_WORD_CHARACTERS))


def _end_of_word(lowered: str, at: int) -> int:
    """Return where the word ends; an arrow and dots that lead to the value are no part of it."""
    word = _WORD.match(lowered, at)
    end = word.end() if word else at
    if lowered.startswith("->", end - 1):
        end -= 1
    return at + len(lowered[at:end].rstrip("."))


_COMPLAINT = re.compile(
    r"(?:expected|near|valid|illegal|matched|missing|extraneous|unknown|input|at|bad|expired) \Z",
    re.IGNORECASE,
)


def is_complaint(mention: Mention) -> bool:
    """Return whether a parser, or a service that takes tokens, complains about a token."""
    return mention.name.lower() == "token" and _COMPLAINT.search(mention.before(20)) is not None
