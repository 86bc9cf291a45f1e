"""A text without its secrets.

Known tokens, addresses, options, calls with keys, and what mentions give values to.

Each rule reads a text once from its start to its end, so the time grows with the length alone. What
one rule leaves may be read otherwise by the next (two quoted texts side by side are one), so they
are repeated until nothing changes.
"""

import re
from collections.abc import Callable
from functools import cache

from .addresses import hide_in_addresses
from .bare_forms import BARE_FORMS
from .calls import hide_arguments, hide_logins, hide_options
from .forms import ANY_NAME, NUMBER, SIGNS, TEXT_FORMS, Form, harmless
from .limits import MENTIONS, TooManyError
from .mentions import SecretMention
from .names import MENTIONS_BY_WORD
from .places import in_one_case
from .tokens import hide_tokens
from .values import BareValues, Value

PASSES = 5
ALL_FORMS = (*TEXT_FORMS, *BARE_FORMS)

Find = Callable[[SecretMention], Value | None]

_SIGNS = re.compile(r"[\s('\"=<:]")
_LISTS = re.compile(
    r"\b(?:OPTIONS|\w*PROPERTIES|WITH|CREDENTIALS|ENCRYPTION)(?:\s*=)?\s*\(", re.IGNORECASE
)


def hide(text: str, gone: str) -> str:
    """The text with `gone` in place of its secrets. Hiding twice is hiding once.

    >>> hide("connect with password=hunter2", "[redacted]")
    'connect with password=[redacted]'
    """
    try:
        for _ in range(PASSES):
            before, text = text, _hide_once(text, gone)
            if text == before:
                break
    except TooManyError:
        return gone
    return text


def _hide_once(text: str, gone: str) -> str:
    text = hide_in_addresses(hide_tokens(text, gone), gone)
    if not _SIGNS.search(text):  # a name
        return text
    if text.isascii() or _LISTS.search(text):
        text = hide_options(text, gone)
    text = hide_arguments(text, gone)
    return hide_mentioned(hide_logins(text, gone), gone)


def hide_mentioned(text: str, gone: str, forms: tuple[Form, ...] = ALL_FORMS) -> str:
    """The text without the values of what it mentions by the name of a secret."""
    pieces: list[str] = []
    end = at = count = 0
    asked, bare = _by_sign_and_kind(forms), BareValues(text)
    search = MENTIONS_BY_WORD.searching(text, in_one_case(text))
    while core := search(at):
        mention = SecretMention(text, bare, core, at)
        count += 1
        if count > MENTIONS:
            raise TooManyError
        value = _value_of(mention, asked[mention.sign, mention.kind])
        at = mention.end
        if value is None:
            continue
        at = max(value.end, at)
        content = text[value.start : value.end]
        if content and not content.startswith(gone) and not harmless(text, value):
            quote = (
                mention.close
                if NUMBER.match(content)
                and mention.close.endswith('"')
                and value.start == mention.at
                else ""
            )
            pieces += [text[end : value.start], quote, gone, quote]
            end = value.end
    return "".join([*pieces, text[end:]]) if pieces else text


def _value_of(mention: SecretMention, finds: tuple[Find, ...]) -> Value | None:
    for find in finds:
        value = find(mention)
        if value is not None:
            return value
    return None


@cache
def _by_sign_and_kind(forms: tuple[Form, ...]) -> dict[tuple[str, str], tuple[Find, ...]]:
    """Which forms are asked, by the sign behind a name and the kind of the name."""
    return {
        (sign, kind): tuple(
            [form.find for form in forms if sign in form.signs and kind in form.kinds]
        )
        for sign in SIGNS
        for kind in ANY_NAME
    }
