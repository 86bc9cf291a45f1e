"""Names of secrets, in JSON objects and in texts."""

import re
from functools import lru_cache

_FLAGS = re.IGNORECASE | re.ASCII
LONGEST = 200  # characters of a name that are looked at, from its end

# A count of tokens is no token. The words before it are checked after it, because few places of a
# text have the word.
_COUNTING = "".join(
    f"(?<!{word}tokens)(?<!{word}[._-]tokens)"
    for word in ("max", "min", "num", "prompt", "completion", "total", "input", "output", "cached")
)
_NO_TOKEN = r"iz|[._-]?(?:count|limit|usage|type)"
_TOKEN = rf"token(?:(?!s|{_NO_TOKEN})|s{_COUNTING}(?!{_NO_TOKEN}))"
_SECRET = r"secret(?!ar[iy]|ions?|ive|ly|[ _-]?(?:santa|sauce|menu|agent|level|shopper))"
_KEY = (
    r"(?:private|secret|shared|ssh|sign(?:ing)?|storage|access|api|account|(?:en|de)cryption|"
    r"master|licen[cs]e|instrumentation|pre-shared|hmac|aes|rsa|gpg|pgp|crypto|cipher|deploy|webhook|jwt|auth|"
    r"fernet|symmetric|subscription|x-[a-z]{1,30})[ ._-]?key"
)
_LOGIN_PASS = (
    r"(?:db|ssh|key|store|become|sudo|smtp|mail|login|user|root|admin|mysql|redis|require)_?pass(?![a-z])|"
    r"(?:bind|user|root)_?pw|masterauth"
)
_CODE = (
    r"(?:verification|recovery|one[._-]?time|2fa|mfa|otp)"
    r"[ ._-]?code|pin[ -]code"
)
_PASS = r"pass(?<![a-z]pass)(?![a-z])|(?-i:Pass(?<=[a-z]Pass)(?![A-Za-z]))"
# Each says a secret behind any sign.
_STRONG = (
    rf"{_LOGIN_PASS}|passw(?:or)?[dt]|passphrase|passcode|passkey|pwd|{_SECRET}|{_TOKEN}|"
    rf"authorization|credential|auth\.user\.info|{_KEY}|{_CODE}|kennwort|basicauth"
)
# Each is a name of something else as often: its value must look like a secret.
_SHORT = r"(?:pin|t?otp|mfa|2fa|cvv|cvc|psk|jwt|salt|creds)"
_PHRASE = (
    r"sess(?:ion)?_?id|assertion|code_verifier|samlresponse|community_string|"
    r"(?:security|access|activation|backup)[ ._-]?code"
)
_GUARDED = rf"(?<![a-z]){_SHORT}(?![a-z])|{_PHRASE}"
# Each says a secret only before an equals sign.
_WEAK = rf"{_PASS}|(?<![a-z])pw(?![a-z\d])|signature|auth(?<![a-z]auth)(?![\w-])|\bsas(?![\w-])"

_STRONG_NAME = re.compile(_STRONG, _FLAGS)
_GUARDED_NAME = re.compile(_GUARDED, _FLAGS)
_WEAK_NAME = re.compile(_WEAK, _FLAGS)
_SECRET_NAME = re.compile(
    rf"{_STRONG}|{_WEAK}|passw|cookie|jaas|keytab|auth(?!or(?!iz)|enticationtype)|\bsas\b", _FLAGS
)
_ENDING = re.compile(rf"(?:{_STRONG})s?\Z|(?:account.key|client.secret)\.[\w.-]+\Z", _FLAGS)
_SECRET_COLUMN = re.compile(
    rf"(?:{_STRONG})s?(?:[._-]?(?:value|string|text|plain|hash(?:ed)?|json|data|new|old|"
    r"confirm(?:ation)?|enc(?:rypted)?|b(?:ase)?64|md5|sha\d*|v?\d+))?\Z",
    _FLAGS,
)
# Facts about a secret: when it changed, where it lies, how long it is.
_ABOUT = re.compile(
    r"[._-](?:at|on|date|time|timestamp|count|length|len|size|type|kind|format|policy|status|"
    r"state|expir\w*|ttl|version|enabled|required|rotat\w+|changed|reset\w*|attempts?|failures?|"
    r"providers?|mode|method|algorithm|arn|scope|file|path|age|encryption|"
    r"(?<=secret.)name|(?<=credential.)name|(?<=credentials.)name)\Z|"
    r"(?-i:[a-z](?:Provider|Mechanism|Policy|Type)s?)\Z",
    _FLAGS,
)
# Every name of a secret contains one of these, or one of `SHORT_WORDS`.
WORDS = (
    *("pass", "pw", "token", "secret", "signature", "auth", "credential", "cookie"),
    *("identified", "sas", "key", "kennwort"),
)
_SHORT_PARTS = (
    *("pin", "otp", "mfa", "2fa", "cvv", "cvc", "psk", "jwt", "salt", "creds", "code"),
    *("assertion", "sessid", "sess_id", "sessionid", "session_id", "saml", "community_string"),
)
SHORT_WORDS = rf"{_CODE}|{_GUARDED}"
_SHORT_WORDS = re.compile(SHORT_WORDS, _FLAGS)
# The same without look-around
SUSPICIOUS_WORDS = rf"(?:^|[^a-z]|\\[nrtf]){_SHORT}(?:[^a-z]|$)|{_PHRASE}|{_CODE}"


@lru_cache(maxsize=10_000)
def is_secret(name: str) -> bool:
    """Return whether the value of that name in a JSON object is a secret.

    >>> is_secret("fs.s3a.secret.key"), is_secret("dbPass"), is_secret("max_tokens")
    (True, True, False)
    >>> is_secret("password_changed_at"), is_secret("secretary")
    (False, False)
    """
    return _SECRET_NAME.search(name) is not None and not _is_about(name)


def has_short_word(lowered: str) -> bool:
    """Return whether a text has one of the short words, which are parts of many others."""
    return (
        any(word in lowered for word in _SHORT_PARTS) and _SHORT_WORDS.search(lowered) is not None
    )


@lru_cache(maxsize=10_000)
def is_guarded(name: str) -> bool:
    """Return whether a value of that name is a secret if it looks like one."""
    return _GUARDED_NAME.search(name) is not None and not _is_about(name)


@lru_cache(maxsize=10_000)
def strength_of(name: str) -> str:
    """Return how sure it is that a name in a text is a secret's, or "".

    A "strong" name is one behind any sign, a "weak" one only before an equals sign, and a
    "guarded" one only with a value that looks like a secret.

    >>> strength_of("DB_PASSWORD"), strength_of("user_auth"), strength_of("token_type")
    ('strong', 'weak', '')
    >>> strength_of("otp"), strength_of("spin")
    ('guarded', '')
    """
    if _is_about(name):
        return ""
    if _STRONG_NAME.search(name):
        return "strong"
    if _WEAK_NAME.search(name):
        return "weak"
    return "guarded" if _GUARDED_NAME.search(name) else ""


@lru_cache(maxsize=10_000)
def ends_as_secret(name: str) -> bool:
    """Return whether a name ends in the word for a secret, as `db.password` does."""
    return _ENDING.search(name) is not None


@lru_cache(maxsize=10_000)
def is_secret_column(name: str) -> bool:
    """Return whether a column holds secrets: its name ends in the word, or in a form of secrets.

    >>> is_secret_column("api_key"), is_secret_column("password_hash"), is_secret_column("token_id")
    (True, True, False)
    """
    return _SECRET_COLUMN.search(name) is not None


def _is_about(name: str) -> bool:
    return _ABOUT.search(name, max(0, len(name) - LONGEST)) is not None
