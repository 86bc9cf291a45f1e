"""A text without its secrets.

Each step reads the text once from its start to its end, so the time grows with its length alone.
What one step hides may show the next one more (two quoted texts side by side are one), so the steps
are repeated until nothing changes.
"""

import re

from .addresses import hide_in_addresses
from .commands import PROGRAMS, hide_in_commands
from .inserted import hide_inserted
from .named import hide_named
from .names import WORDS, has_short_word
from .parentheses import CALLS, hide_in_parentheses
from .sql import Part, outline_of
from .tokens import hide_tokens

PASSES = 5
_STEPS = (hide_in_parentheses, hide_inserted, hide_in_commands, hide_named)
_SIGN = re.compile(r"[\s('\"=<:/]")
# A text without any of these has nothing for the steps behind the addresses.
_HINTS = (*WORDS, *CALLS, *map(str.lower, PROGRAMS), "@")


def hide(text: str, gone: str) -> str:
    """Return the text with `gone` in place of its secrets. Hiding twice is hiding once.

    >>> hide("connect with password=hunter2", "[redacted]")
    'connect with password=[redacted]'
    >>> hide("SELECT 'token: ' || id FROM t WHERE password = 'hunter2'", "[redacted]")
    "SELECT 'token: ' || id FROM t WHERE password = '[redacted]'"
    """
    for _ in range(PASSES):
        before = text
        text = _hide_once(text, gone)
        if text == before:
            break
    return text


def _hide_once(text: str, gone: str, *, is_part: bool = False) -> str:
    text = hide_tokens(text, gone)
    text = hide_in_addresses(text, gone)
    if not _SIGN.search(text):  # a name
        return text
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS) and not has_short_word(lowered):
        return text
    outline = outline_of(text, is_part=is_part)
    if outline.parts:
        text = _hide_in_parts(text, outline.parts, gone)
        outline = outline_of(text, is_part=is_part)
    for step in _STEPS:
        changed = step(text, outline, gone)
        if changed != text:
            text, outline = changed, outline_of(changed, is_part=is_part)
    return text


def _hide_in_parts(text: str, parts: list[Part], gone: str) -> str:
    """Return a statement whose literals and comments are redacted, each as a text of its own."""
    pieces: list[str] = []
    end = 0
    for part in parts:
        pieces += [text[end : part.start], _hidden_part(text[part.start : part.end], part, gone)]
        end = part.end
    return "".join([*pieces, text[end:]])


def _hidden_part(content: str, part: Part, gone: str) -> str:
    doubled = part.quote * 2
    if not doubled or doubled not in content or f"\\{part.quote}" in content:
        return _hide_once(content, gone, is_part=True)
    plain = content.replace(doubled, part.quote)
    hidden = _hide_once(plain, gone, is_part=True)
    return content if hidden == plain else hidden.replace(part.quote, doubled)
