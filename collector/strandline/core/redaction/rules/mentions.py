"""Where a text mentions a secret by its name.

The word, what stands before it, and the sign behind it.
"""

import re

from .names import kind_of
from .values import BareValues, Value

_SIGNS_OF_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_WORD = re.compile(r"[\w.-]*", re.ASCII)
_TAIL = re.compile(
    r"(?P<close>\\{0,63}['\"`])?(?P<index>\s*\])?(?P<blank>\s*)(?P<sign>===?|=>|=|:=|::|:|->|,)?(?P<gap>\s*)"
)


class SecretMention:
    """A name that may be a secret's at text[start:end].

    `name` is the name itself, of a long one its end, and `kind` how much it says: "strong", "weak"
    or "". `sign` is what follows it (`=`, `:`, `->`, `,` or nothing), `close` the quote between the
    two, and a value would stand at text[at].
    """

    __slots__ = (
        "_bare",
        "at",
        "blank",
        "close",
        "end",
        "gap",
        "kind",
        "name",
        "sign",
        "start",
        "text",
    )

    def __init__(self, text: str, bare: BareValues, core: "re.Match[str]", least: int) -> None:
        self.text, self._bare = text, bare
        self.start = start_of_word(text, core.start(), least)
        self.end = end_of_word(text, core.end())
        found = _TAIL.match(text, self.end)
        assert found is not None  # all of it may be empty
        close, self.blank, sign, self.gap = found.group("close", "blank", "sign", "gap")
        self.close, self.sign = close or "", sign or ""
        self.at = found.end()
        self.name = text[max(self.start, self.end - 200) : self.end]
        self.kind = kind_of(self.name)

    def bare_at(self, at: int) -> Value | None:
        """The value without quotes that begins at a place of the text."""
        return self._bare.at(at)

    def before(self, length: int) -> str:
        """The signs before the name."""
        return self.text[max(0, self.start - length) : self.start]

    @property
    def is_spaced(self) -> bool:
        """Whether there are blanks before or after the sign."""
        return bool(self.blank or self.gap)


def start_of_word(text: str, at: int, least: int) -> int:
    """Where the word that stands at a place begins, not before `least`."""
    while at > least and text[at - 1] in _SIGNS_OF_WORDS:
        at -= 1
    return at


def end_of_word(text: str, at: int) -> int:
    """Where it ends: an arrow is no part of it."""
    found = _WORD.match(text, at)
    end = found.end() if found else at
    return end - 1 if text.startswith("->", end - 1) else end
