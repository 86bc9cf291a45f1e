"""A text without its secrets.

Each step reads the text once from its start to its end, so the time grows with its length alone.
What one step hides may show the next one more (two quoted texts side by side are one), so the steps
are repeated until nothing changes.
"""

import re

from .addresses import hide_in_addresses
from .bare_values import (
    assigned,
    assigned_property,
    braced,
    configured_line,
    identified,
    mapped,
    option,
    property_line,
    said,
    set_statement,
    stated,
)
from .commands import COMMANDS, hide_logins
from .inserted import hide_inserted
from .limits import MENTIONS, TooManyError
from .mentions import Mention, in_one_case, next_mention
from .names import MENTION_WORDS
from .options import hide_arguments, hide_options
from .quoted_values import (
    NUMBER,
    annotated,
    assigned_text,
    call_argument,
    clause,
    code_argument,
    cookies,
    json_number,
    juxtaposed,
    labelled,
    labelled_line,
    listed_option,
    paired,
    tagged,
)
from .sql import Outside, parts_of, start_of_sql
from .tokens import hide_tokens
from .values import Value, is_harmless, whole

PASSES = 5
# The forms that are tried behind each sign, in their order.
_EQUALS = (
    assigned_text,
    braced,
    assigned,
    assigned_property,
    set_statement,
    configured_line,
)
_FORMS = {
    "": (
        call_argument,
        labelled,
        labelled_line,
        tagged,
        clause,
        annotated,
        juxtaposed,
        option,
        identified,
        property_line,
        said,
    ),
    ",": (code_argument, listed_option, paired, labelled, tagged),
    ":": (assigned_text, annotated, stated, cookies, json_number, tagged),
    "::": (annotated,),
    "->": (assigned_text, mapped),
    "=>": (assigned_text, mapped),
    "=": _EQUALS,
    "==": _EQUALS,
    "===": _EQUALS,
    ":=": _EQUALS,
}

_SIGN = re.compile(r"[\s('\"=<:/]")
_NAME = re.compile(r"[\w.-]*(?:[ ._-]key)?", re.ASCII)
# A text without any of these has nothing for the steps behind the addresses.
_WORDS = (*MENTION_WORDS, "options", "properties", "with", "encryption", "crypt", "hmac", *COMMANDS)
_LIST = re.compile(
    r"\b(?:OPTIONS|\w*PROPERTIES|WITH|CREDENTIALS|ENCRYPTION)(?:\s*=)?\s*\(", re.IGNORECASE
)


def hide(text: str, gone: str) -> str:
    """Return the text with `gone` in place of its secrets. Hiding twice is hiding once.

    >>> hide("connect with password=hunter2", "[redacted]")
    'connect with password=[redacted]'
    >>> hide("SELECT 'token: ' || id FROM t WHERE password = 'hunter2'", "[redacted]")
    "SELECT 'token: ' || id FROM t WHERE password = '[redacted]'"
    """
    try:
        for _ in range(PASSES):
            before = text
            text = _hide_once(text, gone)
            if text == before:
                break
    except TooManyError:
        return gone
    return text


def _hide_once(text: str, gone: str, place: str = "") -> str:
    text = hide_tokens(text, gone)
    text = hide_in_addresses(text, gone)
    if not _SIGN.search(text):  # a name
        return text
    lowered = text.lower()
    if not any(word in lowered for word in _WORDS):
        return text
    sql = start_of_sql(text)
    if sql >= 0:
        text = _hide_in_literals(text, gone, sql)
    if text.isascii() or _LIST.search(text):
        text = hide_options(text, gone, sql)
    text = hide_arguments(text, gone, sql)
    if "values" in lowered:
        text = hide_inserted(text, gone, sql)
    text = hide_logins(text, gone)
    return hide_mentioned(text, gone, sql, place)


def _hide_in_literals(text: str, gone: str, sql: int) -> str:
    """Return a statement whose literals and comments are redacted, each as a text of its own."""
    pieces: list[str] = []
    end = 0
    for part in parts_of(text, sql):
        content = text[part.start : part.end]
        if _NAME.fullmatch(content):
            continue
        pieces += [text[end : part.start], _redacted_part(content, part.quote, gone)]
        end = part.end
    return "".join([*pieces, text[end:]])


def _redacted_part(content: str, quote: str, gone: str) -> str:
    if not quote:
        return _hide_once(content, gone, "comment")
    if quote * 2 not in content or f"\\{quote}" in content:
        return _hide_once(content, gone, "literal")
    plain = content.replace(quote * 2, quote)
    hidden = _hide_once(plain, gone, "literal")
    return content if hidden == plain else hidden.replace(quote, quote * 2)


def hide_mentioned(text: str, gone: str, sql: int, place: str) -> str:
    """Return the text without the values of the secrets that it mentions by name.

    From `sql` on, mentions inside a literal or comment are passed over: no value may begin in one
    literal and end in another.
    """
    lowered = in_one_case(text)
    outside = Outside(text, sql)
    pieces: list[str] = []
    end = at = count = 0
    while core := next_mention(text, lowered, at):
        part = outside.part_at(core.start())
        if part and not _is_name(text, part.start, part.end):
            at = max(part.end, core.end())
            continue
        count += 1
        if count > MENTIONS:
            raise TooManyError
        mention = Mention(text, core, at, "sql" if 0 <= sql <= core.start() else place)
        at = mention.end
        value = _value_of(mention)
        if value is None:
            continue
        value = whole(text, value)
        at = max(value.end, at)
        content = text[value.start : value.end]
        if not content or content.startswith(gone) or is_harmless(content):
            continue
        # A number in JSON gets the quotes that it did not have.
        is_number = value.start == mention.at and NUMBER.match(content)
        quote = mention.close if is_number and mention.close.endswith('"') else ""
        pieces += [text[end : value.start], quote, gone, quote]
        end = value.end
    return "".join([*pieces, text[end:]]) if pieces else text


def _is_name(text: str, start: int, end: int) -> bool:
    return end - start <= 200 and _NAME.fullmatch(text, start, end) is not None


def _value_of(mention: Mention) -> Value | None:
    for find in _FORMS[mention.sign]:
        value = find(mention)
        if value is not None:
            return value
    return None
