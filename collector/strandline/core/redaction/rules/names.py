"""Names of secrets, in JSON objects and in texts."""

import re
from functools import lru_cache

_FLAGS = re.IGNORECASE | re.ASCII
_LONGEST = 200  # characters of a name that are looked at, from its end

# A count of tokens is no token. The words before it are checked after it, because few places of a
# text have the word.
_COUNTING = "".join(
    f"(?<!{word}tokens)(?<!{word}[._-]tokens)"
    for word in ("max", "min", "num", "prompt", "completion", "total", "input", "output", "cached")
)
_NO_TOKEN = r"iz|[._-]?(?:count|limit|usage|type)"
_TOKEN = rf"token(?:(?!s|{_NO_TOKEN})|s{_COUNTING}(?!{_NO_TOKEN}))"
_PASS = r"pass(?<![a-z]pass)(?![a-z])|(?-i:Pass(?<=[a-z]Pass)(?![A-Za-z]))"
_SECRET = r"secret(?!ar[iy]|ions?|ive|ly|[ _-]?(?:santa|sauce|menu|agent|level|shopper))"
_KEY = (
    r"(?:private|secret|shared|ssh|sign(?:ing)?|storage|access|api|account|(?:en|de)cryption|"
    r"master|licen[cs]e|hmac|aes|rsa|gpg|pgp|crypto|cipher|deploy|webhook|jwt|auth|"
    r"fernet)[ ._-]?key"
)
_LOGIN_PASS = (
    r"(?:db|ssh|become|sudo|smtp|mail|login|user|root|admin|mysql|redis)_?pass(?![a-z])|bind_?pw"
)
_STRONG = (
    rf"{_LOGIN_PASS}|passw(?:or)?[dt]|passphrase|passcode|passkey|pwd|{_SECRET}|{_TOKEN}|authorization|"
    rf"credential|auth\.user\.info|{_KEY}"
)
# Each says a secret only before an equals sign.
_WEAK = rf"{_PASS}|signature|auth(?<![a-z]auth)(?![\w-])|\bsas(?![\w-])"

SECRET_NAME = re.compile(
    rf"passw|passphrase|passcode|passkey|{_PASS}|pwd|bind_?pw|{_SECRET}|{_TOKEN}|credential|cookie|{_KEY}|"
    r"auth(?!or(?!iz)|enticationtype)|signature|jaas|keytab|\bsas\b",
    _FLAGS,
)
# Facts about a secret: when it changed, where it lies, how long it is.
_ABOUT = re.compile(
    r"[._-](?:at|on|date|time|timestamp|count|length|len|size|type|kind|format|policy|status|"
    r"state|expir\w*|ttl|version|enabled|required|rotat\w+|changed|reset\w*|attempts?|failures?|"
    r"providers?|mode|method|algorithm|arn|scope|"
    r"(?<=secret.)name|(?<=credential.)name|(?<=credentials.)name)\Z",
    _FLAGS,
)
_STRONG_NAME = re.compile(_STRONG, _FLAGS)
_WEAK_NAME = re.compile(_WEAK, _FLAGS)
ENDING_NAME = re.compile(rf"(?:{_STRONG})s?\Z|(?:account.key|client.secret)\.[\w.-]+\Z", _FLAGS)
# A column that holds a secret: its name ends in the word, or in the form that the secret has.
SECRET_COLUMN = re.compile(
    rf"(?:{_STRONG})s?(?:[._-]?(?:value|string|text|plain|hash(?:ed)?|json|data|new|old|"
    r"confirm(?:ation)?|enc(?:rypted)?|b(?:ase)?64|md5|sha\d*|v?\d+))?\Z",
    _FLAGS,
)

# Where a text may mention a secret.
MENTION = re.compile(
    rf"p(?:assw(?:or)?[dt]|assphrase|asscode|asskey|wd|(?:rivate|gp)[ ._-]?key)|{_TOKEN}|"
    rf"s(?:(?:ecret|hared|sh|ign|igning|torage)[ ._-]?key|ignature)|{_SECRET}|"
    r"a(?:uthorization|uth(?<![a-z]auth)(?![\w-])|(?:ccess|pi|ccount|es|uth)[ ._-]?key)|"
    r"c(?:redential|ookie|(?:rypto|ipher)[ ._-]?key)|"
    r"(?:(?:en|de)cryption|master|licen[cs]e|hmac|rsa|gpg|deploy|webhook|jwt|fernet)[ ._-]?key|"
    rf"identified|bind_?pw|{_PASS}|\bsas(?![\w-])",
    _FLAGS,
)
# Every mention contains one of these.
MENTION_WORDS = (
    *("pass", "pwd", "token", "secret", "signature", "auth", "credential", "cookie"),
    *("identified", "sas", "key", "bindpw", "bind_pw"),
)


@lru_cache(maxsize=10_000)
def is_secret(name: str) -> bool:
    """Return whether the value of that name in a JSON object is a secret.

    >>> is_secret("fs.s3a.secret.key"), is_secret("dbPass"), is_secret("max_tokens")
    (True, True, False)
    >>> is_secret("password_changed_at"), is_secret("secretary")
    (False, False)
    """
    return SECRET_NAME.search(name) is not None and not _is_about(name)


@lru_cache(maxsize=10_000)
def strength_of(name: str) -> str:
    """Return "strong", "weak" (a secret only before an equals sign) or "" for a name in a text.

    >>> strength_of("DB_PASSWORD"), strength_of("user_auth"), strength_of("token_type")
    ('strong', 'weak', '')
    """
    if _is_about(name):
        return ""
    if _STRONG_NAME.search(name):
        return "strong"
    return "weak" if _WEAK_NAME.search(name) else ""


def _is_about(name: str) -> bool:
    return _ABOUT.search(name, max(0, len(name) - _LONGEST)) is not None
