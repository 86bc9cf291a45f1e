"""Values that a text gives to the name of a secret.

For each sign behind the name there are the ways in which SQL, code, shells, settings, logs and
prose write a value.
"""

from .bare import (
    assigned,
    block,
    braced,
    cookie_entries,
    cookies,
    guarded,
    mapped,
    number,
    option,
    setting,
    stated,
)
from .mentions import Mention, next_mention, words_of
from .prose import announced, followed, said
from .quoted import (
    aliased,
    annotated,
    argument,
    assigned_text,
    clause,
    juxtaposed,
    labelled,
    listed,
    tagged,
)
from .sql import Outline
from .values import NUMBER, Value, is_harmless, whole

MENTIONS = 5_000  # a text with more was written to cost time: it is hidden as a whole

_EQUALS = (assigned_text, braced, assigned, setting)
# The ways in which a value may follow each sign, in their order.
_WAYS = {
    "": (
        argument,
        labelled,
        tagged,
        aliased,
        clause,
        annotated,
        juxtaposed,
        option,
        announced,
        said,
        followed,
    ),
    "..": (juxtaposed,),
    ",": (aliased, listed, labelled, tagged),
    ":": (assigned_text, block, annotated, stated, number, tagged),
    "::": (annotated,),
    "->": (assigned_text, mapped),
    "=>": (assigned_text, mapped),
    "=": _EQUALS,
    "==": _EQUALS,
    "===": _EQUALS,
    ":=": _EQUALS,
}


def hide_named(text: str, outline: Outline, gone: str) -> str:
    """Return the text without the values of the secrets that it names.

    >>> from .sql import outline_of
    >>> text = "db.password: hunter2"
    >>> hide_named(text, outline_of(text), "***")
    'db.password: ***'
    """
    pieces: list[str] = []
    end = at = count = 0
    words = words_of(outline)
    while mention := next_mention(text, outline, at, words):
        count += 1
        if count > MENTIONS:
            return gone
        at = mention.end
        for value in _values_of(mention):
            at = max(value.end, at)
            content = text[value.start : value.end]
            is_hidden = value.start < end or content.startswith(gone)
            if not content or is_hidden or is_harmless(content):
                continue
            # A number in JSON gets the quotes that it did not have.
            is_number = value.start == mention.at and NUMBER.match(content)
            quote = mention.close if is_number and mention.close.endswith('"') else ""
            pieces += [text[end : value.start], quote, gone, quote]
            end = value.end
    return "".join([*pieces, text[end:]]) if pieces else text


def _values_of(mention: Mention) -> list[Value]:
    if not mention.strength and mention.sign == "=":
        return cookie_entries(mention)
    value = _value_of(mention)
    return [whole(mention.text, value)] if value else []


def _value_of(mention: Mention) -> Value | None:
    if not mention.strength:
        return cookies(mention) if mention.sign == ":" else clause(mention)
    if mention.strength == "guarded":
        return guarded(mention)
    for find in _WAYS[mention.sign[:3] if mention.sign[:2] != ".." else ".."]:
        value = find(mention)
        if value is not None:
            return value
    return None
