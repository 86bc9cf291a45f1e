"""Where a text mentions a secret by its name: the word, what stands before it, and the sign behind it."""

import re
from functools import cached_property

from .names import kind_of

_SIGNS_OF_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_WORD = re.compile(r"[\w.-]*", re.ASCII)
_TAIL = re.compile(
    r"(?P<close>\\{0,63}['\"`])?(?P<index>\s*\])?(?P<blank>\s*)(?P<sign>===?|=>|=|:=|::|:|->|,)?(?P<gap>\s*)"
)


class SecretMention:
    """A name that may be a secret's at text[start:end].

    `sign` is what follows it (`=`, `:`, `->`, `,` or nothing), `close` the quote between the two, and a value would stand
    at text[at].
    """

    __slots__ = ("__dict__", "at", "blank", "close", "end", "gap", "sign", "start", "text")

    def __init__(self, text: str, core: "re.Match[str]", least: int) -> None:
        self.text = text
        self.start = start_of_word(text, core.start(), least)
        self.end = end_of_word(text, core.end())
        found = _TAIL.match(text, self.end)
        assert found is not None  # all of it may be empty
        self.close, self.blank, self.sign, self.gap = (
            found["close"] or "",
            found["blank"],
            found["sign"] or "",
            found["gap"],
        )
        self.at = found.end()

    @cached_property
    def name(self) -> str:
        """The name itself, of a long one its end."""
        return self.text[max(self.start, self.end - 200) : self.end]

    @cached_property
    def kind(self) -> str:
        """How much the name says: "strong", "weak" or ""."""
        return kind_of(self.name)

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
