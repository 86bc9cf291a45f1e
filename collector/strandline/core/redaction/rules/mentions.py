"""Mentions of secrets: a name in a text, and the sign behind it."""

import re

from .names import MENTION, MENTION_WORDS, strength_of

_WORD_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_WORD = re.compile(r"[\w.-]*", re.ASCII)
_TAIL = re.compile(
    r"(?P<close>\\{0,63}['\"`])?(?P<index>\s*\])?(?P<blank>\s*)"
    r"(?P<sign>===?|=>|=|:=|::|:|->|,)?(?P<gap>\s*)"
)
_COMPLAINT = re.compile(
    r"(?:expected|near|valid|illegal|matched|missing|extraneous|unknown|input|at|bad|expired) \Z",
    re.IGNORECASE,
)
# Looking for words and only there for a mention takes a tenth of the time. A mention begins with
# its word, unless that is "key".
_ANY_WORD = re.compile("|".join(MENTION_WORDS))
_BEFORE_KEY = len("encryption ")


def in_one_case(text: str) -> str:
    """Return the text in lower case, with `?` for what is not ASCII, so that places stay.

    >>> in_one_case("PASSWORT für ALLE")
    'passwort f?r alle'
    """
    if not text.isascii():
        text = text.encode("ascii", "replace").decode("ascii")
    return text.lower()


def next_mention(text: str, lowered: str, at: int) -> "re.Match[str] | None":
    """Return the next mention from a place on; `lowered` is the text in one case."""
    word = _ANY_WORD.search(lowered, at)
    while word:
        first = word.start()
        if word[0] == "key":
            first = max(at, first - _BEFORE_KEY)
        for start in range(first, word.start() + 1):
            mention = MENTION.match(text, start)
            if mention:
                return mention
        word = _ANY_WORD.search(lowered, word.end())
    return None


class Mention:
    """A name at text[start:end] that may be a secret's.

    `name` is the end of it, if it is long, and `strength` is "strong", "weak" or "". `close` is
    the quote behind the name and `sign` what follows it (`=`, `:`, `->`, `,` or nothing). A value
    would begin at text[at]. `place` is "sql" outside of literals and comments, "comment",
    "literal", or "" in other texts.
    """

    __slots__ = (
        "at",
        "blank",
        "close",
        "end",
        "gap",
        "name",
        "place",
        "sign",
        "start",
        "strength",
        "text",
    )

    def __init__(self, text: str, core: "re.Match[str]", least: int, place: str) -> None:
        self.text = text
        self.place = place
        self.start = _start_of_word(text, core.start(), least)
        self.end = _end_of_word(text, core.end())
        tail = _TAIL.match(text, self.end)
        assert tail is not None  # each of its parts may be empty
        self.close = tail["close"] or ""
        self.sign = tail["sign"] or ""
        self.blank = tail["blank"]
        self.gap = tail["gap"]
        self.at = tail.end()
        self.name = text[max(self.start, self.end - 200) : self.end]
        self.strength = strength_of(self.name)

    def before(self, length: int) -> str:
        """Return the characters before the name."""
        return self.text[max(0, self.start - length) : self.start]

    @property
    def is_strong(self) -> bool:
        """Return whether the name is one of a secret behind any sign."""
        return self.strength == "strong"

    @property
    def is_spaced(self) -> bool:
        """Return whether there are blanks before or after the sign."""
        return bool(self.blank or self.gap)

    @property
    def is_complaint(self) -> bool:
        """Return whether a parser, or a service that takes tokens, complains about a token."""
        return self.name.lower() == "token" and _COMPLAINT.search(self.before(20)) is not None


def _start_of_word(text: str, at: int, least: int) -> int:
    while at > least and text[at - 1] in _WORD_CHARACTERS:
        at -= 1
    return at


def _end_of_word(text: str, at: int) -> int:
    """Return where the word ends; an arrow is no part of it."""
    word = _WORD.match(text, at)
    end = word.end() if word else at
    return end - 1 if text.startswith("->", end - 1) else end
