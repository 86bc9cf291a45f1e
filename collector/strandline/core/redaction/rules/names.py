"""Which names are those of secrets.

In JSON (`SECRET_NAME`), and where a text mentions one (`MENTION`).
"""

import re
from functools import lru_cache

from .places import Words

# A count of tokens is none. What stands before a word is looked at after it: few places have the
# word.
_COUNTING = "".join(
    f"(?<!{word}tokens)(?<!{word}[._-]tokens)"
    for word in ("max", "min", "num", "prompt", "completion", "total", "input", "output", "cached")
)
_NO_TOKEN = r"iz|[._-]?(?:count|limit|usage|type)"
_TOKEN = rf"token(?:(?!s|{_NO_TOKEN})|s{_COUNTING}(?!{_NO_TOKEN}))"
_PASS = r"pass(?<![a-z]pass)(?![a-z])|(?-i:Pass(?<=[a-z]Pass)(?![A-Za-z]))"
_KEY = (
    r"(?:private|secret|shared|ssh|sign(?:ing)?|storage|access|api|account|(?:en|de)cryption|master|licen[cs]e|hmac|aes|rsa|"
    r"gpg|pgp|crypto|cipher|deploy|webhook|jwt|auth)[ ._-]?key"
)
_FLAGS = re.IGNORECASE | re.ASCII

SECRET_NAME = re.compile(
    rf"passw|passphrase|passcode|passkey|{_PASS}|pwd|secret|{_TOKEN}|credential|cookie|{_KEY}|"
    r"auth(?!or(?!iz)|enticationtype)|signature|jaas|keytab|\bsas\b",
    _FLAGS,
)
# Beside a secret, and none: when it changed, where it lies, how long it is.
_ABOUT = re.compile(
    r"[._-](?:at|on|date|time|timestamp|count|length|len|size|type|kind|format|policy|status|state|expir\w*|ttl|version|"
    r"enabled|required|rotat\w+|changed|reset\w*|attempts?|failures?|providers?|mode|method|algorithm|arn|scope|"
    r"(?<=secret.)name|(?<=credential.)name|(?<=credentials.)name)\Z",
    _FLAGS,
)
# they say something else but before `=`
_WEAK_NAME = rf"{_PASS}|signature|auth(?<![a-z]auth)(?![\w-])|\bsas(?![\w-])"
_STRONG = rf"passw(?:or)?d|passphrase|passcode|passkey|pwd|secret|{_TOKEN}|authorization|credential|{_KEY}"
STRONG_NAME = re.compile(_STRONG, _FLAGS)
ENDING_NAME = re.compile(rf"(?:{_STRONG})s?\Z|account.key\.[\w.-]+\Z", _FLAGS)

# Where a text mentions a secret. One branch for each letter that may begin one: half of the time
# goes into looking for these.
MENTION = re.compile(
    rf"p(?:assw(?:or)?d|assphrase|asscode|asskey|wd|(?:rivate|gp)[ ._-]?key)|{_TOKEN}|"
    r"s(?:ecret|(?:hared|sh|ign|igning|torage)[ ._-]?key|ignature)|"
    r"a(?:uthorization|uth(?<![a-z]auth)(?![\w-])|(?:ccess|pi|ccount|es|uth)[ ._-]?key)|"
    r"c(?:redential|ookie|(?:rypto|ipher)[ ._-]?key)|(?:(?:en|de)cryption|master|licen[cs]e|hmac|rsa|gpg|deploy|webhook|jwt)[ ._-]?key|"
    rf"identified|{_PASS}|\bsas(?![\w-])",
    _FLAGS,
)
# A word that each of these has, in lower case, and how far behind the beginning it may stand.
_WORDS = (
    "pass",
    "pwd",
    "token",
    "secret",
    "signature",
    "auth",
    "credential",
    "cookie",
    "identified",
    "sas",
)
MENTIONS_BY_WORD = Words(MENTION, dict.fromkeys(_WORDS, 0) | {"key": len("encryption ")})


@lru_cache(maxsize=10_000)
def is_secret(name: str) -> bool:
    """Whether the value of that name in a JSON object is a secret.

    >>> is_secret("fs.s3a.secret.key"), is_secret("dbPass"), is_secret("max_tokens"), is_secret("password_changed_at")
    (True, True, False, False)
    """
    return SECRET_NAME.search(name) is not None and not _is_about(name)


@lru_cache(maxsize=10_000)
def kind_of(name: str) -> str:
    """How much a name in a text says: "strong", "weak" (`pass`, `auth`.

    Only before an equals sign), or "" for none.

    >>> kind_of("DB_PASSWORD"), kind_of("DB_PASS"), kind_of("token_type")
    ('strong', 'weak', '')
    """
    if _is_about(name):
        return ""
    return "strong" if STRONG_NAME.search(name) else "weak" if _WEAK.search(name) else ""


def _is_about(name: str) -> bool:
    """Whether the end of a name says that it is of something beside a secret."""
    return _ABOUT.search(name, max(0, len(name) - 200)) is not None


_WEAK = re.compile(_WEAK_NAME, _FLAGS)
