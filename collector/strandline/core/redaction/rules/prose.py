"""The ways in which a sentence gives a secret its value."""

import re

from .mentions import Mention
from .names import LONGEST, ends_as_secret, is_secret
from .values import Value, is_generated, is_mixed, quoted_at, word_at

_SAYS = re.compile(
    r"['\"]?(?:\s{1,5}(?:for|of)(?:\s{1,5}[\w@.'\"-]{1,100}){1,3}?|\s{1,5}value)?"
    r"\s{1,5}(?:(?:is|was|are|has\s{1,5}been|equals|reads)(?:\s{1,5}(?:now|(?:re)?set\s{1,5}to|(?:changed|rotated)\s{1,5}to))?|"
    r"ha[sd]\s{1,5}value|changed\s{1,5}from\s{1,5}\S{1,100}\s{1,5}to|(?:provided|given|used|supplied)(?=\s{0,5}:)|"
    r"to(?=\s{1,5}(?:['\"]|[^\s:]{0,100}\d)))\s{0,5}:?\s{1,5}",
    re.IGNORECASE,
)
# A temporary password is generated for root@localhost: x; the password you entered (x)
_ANNOUNCES = re.compile(
    r"(?:(?:\s{1,5}[\w@.,'\"-]{1,100}){1,8}?:\s{1,5}|(?:\s{1,5}[\w@.'-]{1,100}){0,4}?\s{1,5}[\[(<])"
)
_LEVEL = re.compile(r"\(|\d\s{1,5}")  # (x) and, of routers, `secret 5 x`
_SENTENCE_END = re.compile(r"\s*(?:[.,;:!?)\]\r\n]|\Z)")
_SNAKE_CASE = re.compile(r"[a-z]+(?:_[a-z0-9]+)+", re.IGNORECASE)
_KNOWN_FORMAT = re.compile(
    r"(?:sha-?\d+|argon2\w*|md5|base64|utf-?\d+|[hre]s\d{3}|oauth2?|v?\d+(?:\.\d+)*|\d+[-a-z]{1,8}|https?|"
    r"\d{4}-\d\d-\d\d.*)",
    re.IGNORECASE,
)
# Adjectives and participles, which say how a secret is.
QUALITY = re.compile(
    r"[a-z]*(?:ed|ing|[ai]ble|ful|less|ent|ant|ive|al|ous|id|ect|ory|ary|own|en|ak|ly|ort|ong)|"
    r"set|it|gone|here|there|same|ok|bad|old|new|null|none|true|false|empty|safe|unsafe|secure|"
    r"insecure|unique|open|stale|blank|late|not|no|yes|a|an|the|too|so|mine|yours|lost|sent|"
    r"reset|unset|read|kept|stolen|fine|good|right|up|out|in|on|off|public|private|secret|case|"
    r"static|dynamic|plain|text|token|password|key|string|needed|must|should|for|of|by|from|with",
    re.IGNORECASE,
)


def announced(mention: Mention) -> Value | None:
    """Find the value of `A temporary password is generated for root@localhost: x`."""
    if not _is_in_prose(mention):
        return None
    words = _ANNOUNCES.match(mention.text, mention.end)
    value = word_at(mention.text, words.end()) if words else None
    content = mention.content(value) if value else ""
    return value if is_mixed(content) and not _KNOWN_FORMAT.fullmatch(content) else None


def said(mention: Mention) -> Value | None:
    """Find `the password is x` and `set the password to x`."""
    verb = _SAYS.match(mention.text, mention.end) if _is_in_prose(mention) else None
    if verb is None:
        return None
    quoted = quoted_at(mention.text, verb.end())
    value = quoted or word_at(mention.text, verb.end())
    if value is None or quoted or mention.close:
        return quoted
    is_last = _SENTENCE_END.match(mention.text, value.end) or mention.text[value.end - 1] in ".!?"
    return spoken(mention, value, is_whole=bool(is_last))


def followed(mention: Mention) -> Value | None:
    """Find `log in with password x` and `USER ann PASS x`, with a generated value."""
    if mention.in_sql or mention.close or not mention.blank or mention.before(1) == "=":
        return None
    level = _LEVEL.match(mention.text, mention.at)
    value = word_at(mention.text, level.end() if level else mention.at)
    if value is None:
        return None
    content = mention.content(value).rstrip(".:!?")
    if not mention.is_strong:
        return value if len(content) >= 8 and is_mixed(content) else None
    if "-" in content and is_secret(content):  # secret db1-credentials
        return None
    least = 10 if mention.name.lower() == "token" else 6
    if not ends_as_secret(mention.name) or len(content) < least or _SNAKE_CASE.fullmatch(content):
        return None
    return spoken(mention, value, is_whole=False)


def _is_in_prose(mention: Mention) -> bool:
    has_name = mention.is_strong and ends_as_secret(mention.name)
    return has_name and bool(mention.blank) and not mention.in_sql


def spoken(mention: Mention, value: Value, *, is_whole: bool) -> Value | None:
    """Return the value without its full stop, unless it is a common word.

    `is_whole`: nothing follows in the sentence, so a word of letters may be the secret too.
    """
    content = mention.content(value)
    stripped = content.rstrip(".:!?")
    if not stripped or _KNOWN_FORMAT.fullmatch(stripped):
        return None
    is_word = is_whole and len(stripped) >= 4 and not QUALITY.fullmatch(stripped)
    if not is_word and not is_generated(stripped):
        return None
    end = value.end - (len(content) - len(stripped) if len(content) < LONGEST else 0)
    return Value(value.start, end, value.after)
