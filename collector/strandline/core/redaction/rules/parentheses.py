"""Secrets in parentheses: options of SQL, keys that functions take, and logins.

The word before a parenthesis says what the literals in it are, whatever their names.
"""

import re
from collections.abc import Callable, Iterable

from .names import LONGEST, is_secret
from .sql import Outline
from .values import QUOTED, is_generated, is_harmless, is_mixed

OPTIONS = 20_000  # a list with more was written to cost time: it is hidden as a whole
# A call that takes secrets contains one of these, in lower case.
CALLS = (
    *("options", "properties", "with", "encryption", "crypt", "hmac", "s3", "gcs", "oss", "cosn"),
    *("iceberg", "deltalake", "hudi", "mysql", "postgresql", "mongodb", "remote", "azureblob"),
    *("redis", "connect", "login", "logon", "authenticate"),
    *("fernet", "keyspec", "jwt.", "credential"),
)

_BLANKS = " \t\r\n\f\v"
_WORD = "abcdefghijklmnopqrstuvwxyz0123456789_."
_LIST = re.compile(r"options|properties|with|credentials?|encryption")
_QUERY = re.compile(r"\s*select\b")
_ENCRYPTION = re.compile(
    r"(?:try_)?aes_(?:en|de)crypt|des_(?:en|de)crypt|(?:en|de)crypt(?:_\w+|by\w+|raw)?|crypt|"
    r"pgp_(?:sym|pub)_(?:en|de)crypt(?:_bytea)?|hmac(?:_?(?:md5|sha\d+))?|encrypt_literal|(?:en|"
    r"de)code_with_key|fernet|secretkeyspec"
)
# Functions and engines of ClickHouse
_STORAGE = re.compile(r"s3(?:cluster|queue)?|gcs|oss|cosn|iceberg(?:s3)?|deltalake|hudi")
_SERVER = re.compile(r"mysql|postgresql|mongodb|remote(?:secure)?|azureblobstorage|redis")
# Pairs of a user and a password: `auth=(..)`, `HTTPBasicAuth(..)`, `getConnection(url, ..)`
_KEYED = re.compile(r"hmac\.new|jwt\.(?:en|de)code")
_CREDENTIAL = re.compile(r"\w+credentials?(?:\.create)?")
_LOGIN = re.compile(r"\w*auth|\w+(?:authentication|credentials)|getconnection")
# Calls that may take anything else, as `page.login("Sign in", "Home")` does
_LOGIN_OR_OTHER = re.compile(r"login|logon|authenticate")
_CONNECT = re.compile(r"(?:\w+_)?connect")
_NO_PASSWORD = re.compile(r"\s|@[\w-]+\.")  # a title, or an e-mail's address
_NAME_WITH_NUMBER = re.compile(r"[a-z]+\d{1,4}", re.IGNORECASE)
# Before a literal it says that the literal is no argument by its place.
_BY_NAME = re.compile(r"[{=:]")

# Also between escaped quotes, as in JSON in a text
_LITERAL = re.compile(rf"\\{{1,63}}['\"](?P<content>[^'\"\\]*)\\{{1,63}}['\"]|{QUOTED}")
_NESTING = re.compile(rf"{_LITERAL.pattern}|[()]")
_OPTION = re.compile(
    rf"(?P<name>{QUOTED}|`[^`]+`|[\w.-]+)(?:(?P<sign>\s*(?:=>?|:)\s*|\s+)"
    rf"(?P<value>(?i:ARRAY)\s*\[[^\]]{{0,2000}}\]|(?:[neuxNEUX]&?)?{QUOTED}|[^\s,'\"=()]+))?",
    re.ASCII,
)
# Options whose value may look generated, as a name with a number does.
_HARMLESS_NAME = re.compile(
    r"\w*url|uri|topic\w*|subscribe|dbtable|\w*location|path|owner|users?|username|comment|"
    r"description|index|bucket\w*|\w*servers|hostname|host|endpoint|region|delimiter|sep|"
    r"(?:[\w.-]*[._-])?(?:format|type|mode|codec|version|zone|group\.id|by|offsets?|pattern|columns?|"
    r"topics?|(?:table|database|schema|catalog|group)(?:[._-]?(?:name|list|id))?|"
    r"path|warehouse|servers|class|impl|region|endpoint|field|key)",
    re.IGNORECASE | re.ASCII,
)
_HARMLESS_VALUE = re.compile(
    r"-?\d[\d.,_]*\s*[a-z]{0,9}|"  # a number with its unit
    r"[\w.+-]*:?/[^\s=@]*|"  # a path or an address
    r"\$[.\[][\w.\[\]*-]*|[yMdHhmsS:/' T.-]{4,30}|"  # a place in JSON, a format of dates
    r"utf-?8|lz4|bz2|s3|gen2|v\d+",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"(?:n?(?:var)?char|string|text|\w*int|decimal|numeric|bool|date|json|timestamp)\w*|binary|blob|"
    r"bytes?|bytea|double|float|real|long|short|uuid|variant",
    re.IGNORECASE,
)
_MODE = re.compile(
    r"[hrep]s\d{3}|gcm|cbc|ecb|ctr|pkcs|default|none|md5|sha-?\d{1,3}|aes(?:-?\w{1,8}(?:/\w+(?::\w+)?)*)?|bf|"
    r"hex|base64|utf-?8|[yMdHhmsS:/ T.-]{4,30}|",
    re.IGNORECASE,
)
_DATA_FORMAT = re.compile(
    r"auto|nosign|[\w]*(?:csv|tsv|json|parquet|orc|avro|arrow|native|tabseparated|values|lines?|"
    r"raw\w*|rowbinary|protobuf|msgpack|xml|template|regexp|withnames(?:andtypes)?|eachrow)|"
    r"none|gz(?:ip)?|zstd?|br(?:otli)?|xz|lz4|bz2|snappy|deflate|[\w]+ [\w()]+(?:\s*,\s*[\s\S]*)?",
    re.IGNORECASE,
)
_HOST = re.compile(
    r"[\w.-]+:\d{1,5}|\{[^{}]{1,200}\}|[\w.-]+\.[\w.-]+|https?://\S+|DefaultEndpoints[\s\S]*"
)

Hiding = Callable[[str, str], str]


def hide_in_parentheses(text: str, outline: Outline, gone: str) -> str:
    """Return the text without secret options, keys and logins.

    >>> from .sql import outline_of
    >>> text = "CREATE TABLE t WITH ('value.format'='json', 'code'='hunter2')"
    >>> hide_in_parentheses(text, outline_of(text), "***")
    "CREATE TABLE t WITH ('value.format'='json', 'code'='***')"
    >>> text = "s3('https://b/x.csv', 'AKIA', 'hunter2', 'CSV')"
    >>> hide_in_parentheses(text, outline_of(text), "***")
    "s3('https://b/x.csv', '***', '***', 'CSV')"
    """
    pieces: list[str] = []
    end = 0
    opening = outline.text.find("(")
    while opening >= 0:
        start = opening + 1
        hiding = _hiding_for(outline, opening)
        if hiding:
            closing = _closing(text, start)
            pieces += [text[end:start], hiding(text[start:closing], gone)]
            end = start = closing
        opening = outline.text.find("(", start)
    return "".join([*pieces, text[end:]]) if pieces else text


def _hiding_for(outline: Outline, opening: int) -> Hiding | None:
    """Return the rule for secrets behind a parenthesis, by the word before it."""
    before = outline.text[max(0, opening - 60) : opening].rstrip(_BLANKS)
    before = before.removesuffix("=").rstrip(_BLANKS)
    name = before[len(before.rstrip(_WORD)) :]
    word = name.rpartition(".")[2]
    if word == "options" or _LIST.fullmatch(name):
        return None if _QUERY.match(outline.text, opening + 1) else _hide_options
    if _ENCRYPTION.fullmatch(word) or _KEYED.fullmatch(name):
        return _hider_of(_keys)
    if _STORAGE.fullmatch(name):
        return _hider_of(_storage_keys)
    if _SERVER.fullmatch(name):
        return _hider_of(_server_password)
    if opening < outline.sql:
        if _CREDENTIAL.fullmatch(name):
            return _hider_of(_last_generated, by_place=True)
        if _LOGIN.fullmatch(word):
            return _hider_of(_login_password)
        if _LOGIN_OR_OTHER.fullmatch(word):
            return _hider_of(_generated_password, by_place=True)
        if _CONNECT.fullmatch(word):
            return _hider_of(_mixed_password, by_place=True)
    return None


def _closing(text: str, start: int) -> int:
    """Return the place of the closing parenthesis, or the end of the text without one."""
    depth = 1
    for mark in _NESTING.finditer(text, start):
        if mark[0] == "(":
            depth += 1
        elif mark[0] == ")":
            depth -= 1
        if depth == 0:
            return mark.start()
    return len(text)


def _hide_options(options: str, gone: str) -> str:
    changed, count = _OPTION.subn(lambda option: _hidden_option(option, gone), options, OPTIONS)
    return changed if count < OPTIONS else gone


def _hidden_option(option: re.Match[str], gone: str) -> str:
    name, value = option["name"].strip("'\"`"), option["value"]
    if value is None:  # one of several values, if it is quoted
        quote = option["name"][0]
        is_value = quote in "'\"" and is_secret_option("", name)
        return f"{quote}{gone}{quote}" if is_value else option[0]
    if _TYPE.fullmatch(value) or not is_secret_option(name, value.strip("'\"")):
        return option[0]
    quote = '"' if value[0] == '"' else "'"
    return f"{option['name']}{option['sign']}{quote}{gone}{quote}"


def is_secret_option(name: str, value: str) -> bool:
    """Return whether an option is secret by its name, or by its value unless the name is harmless.

    >>> is_secret_option("code", "hunter2"), is_secret_option("code", "json")
    (True, False)
    >>> is_secret_option("password", "12")
    True
    """
    if is_harmless(value):
        return False
    if len(name) > LONGEST or is_secret(name):
        return True
    if _HARMLESS_NAME.fullmatch(name):
        return False
    return is_generated(value) and not _HARMLESS_VALUE.fullmatch(value)


def _hider_of(choose: Callable[[list[str]], Iterable[int]], *, by_place: bool = False) -> Hiding:
    """Return a rule that hides literals by their position.

    `by_place`: only those before the first that has a name, as in `user='ann'`.
    """

    def hide(arguments: str, gone: str) -> str:
        literals = list(_LITERAL.finditer(arguments))
        if by_place:
            literals = _without_names(arguments, literals)
        places = [_content_of(literal) for literal in literals]
        pieces: list[str] = []
        end = 0
        for number in choose([arguments[start:stop] for start, stop in places]):
            start, stop = places[number]
            pieces += [arguments[end:start], gone]
            end = stop
        return "".join([*pieces, arguments[end:]])

    return hide


def _without_names(arguments: str, literals: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the literals before the first that has a name; the first by itself is no login."""
    end = 0
    for number, literal in enumerate(literals):
        if _BY_NAME.search(arguments, end, literal.start()):
            return literals[:number] if number > 1 else []
        end = literal.end()
    return literals


def _content_of(literal: re.Match[str]) -> tuple[int, int]:
    """Return where the content of a literal starts and ends."""
    if literal["content"] is not None:
        return literal.span("content")
    is_closed = len(literal[0]) > 1 and literal[0][-1] == literal[0][0]
    return literal.start() + 1, literal.end() - is_closed


def _keys(literals: list[str]) -> Iterable[int]:
    """Choose all but the names of modes."""
    for number, literal in enumerate(literals):
        if len(literal) >= 40 or not _MODE.fullmatch(literal):
            yield number


def _storage_keys(literals: list[str]) -> Iterable[int]:
    """Choose the key, secret and session token behind an address."""
    addresses = [number for number, literal in enumerate(literals) if "://" in literal]
    if not addresses:
        return ()
    keys = []
    for number in range(addresses[0] + 1, min(addresses[0] + 4, len(literals))):
        if _DATA_FORMAT.fullmatch(literals[number]):
            break
        keys.append(number)
    return keys if len(keys) > 1 else ()


def _server_password(literals: list[str]) -> Iterable[int]:
    """Choose the password: the last or fifth literal, of which the first is a server."""
    if len(literals) < 4 or not _HOST.fullmatch(literals[0]):
        return ()
    return (min(4, len(literals) - 1),)


def _login_password(literals: list[str]) -> Iterable[int]:
    """Choose the last of a user and a password, with or without an address before them.

    A literal that stands alone is chosen if it was generated.
    """
    if len(literals) == 1:
        return (0,) if is_generated(literals[0]) else ()
    has_server = len(literals) > 2 and (":" in literals[0] or _HOST.fullmatch(literals[0]))
    number = 2 if has_server else 1
    has_more = len(literals) > number + 1 + (not has_server)  # behind it a database may stand
    if has_more or len(literals) <= number or is_harmless(literals[number]):
        return ()
    return (number,)


def _last_generated(literals: list[str]) -> Iterable[int]:
    """Choose the last literal of `ClientSecretCredential(..)` if it was generated."""
    return (len(literals) - 1,) if literals and is_generated(literals[-1]) else ()


def _generated_password(literals: list[str]) -> Iterable[int]:
    """Choose the password of `login("ann", "x")` if it was generated."""
    for number in _login_password(literals):
        if is_generated(literals[number]) and not _NO_PASSWORD.search(literals[number]):
            yield number


def _mixed_password(literals: list[str]) -> Iterable[int]:
    """Choose the password of `connect("ann", "x")` if it mixes letters and digits as no name does.

    Nodes, tasks and signals are connected too.
    """
    for number in _login_password(literals):
        password = literals[number]
        if len(literals) > 1 and is_mixed(password) and not _NAME_WITH_NUMBER.fullmatch(password):
            yield number
