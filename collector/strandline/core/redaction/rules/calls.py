"""Lists of options in SQL, and calls of functions that take keys.

Here the place says what a value is, not its name.

Options are kept by an allow-list: those whose name or value is known to tell nothing. Of a function
that encrypts, every quoted argument goes but the names of modes.
"""

import re
from collections.abc import Callable

from .limits import ITEMS, LISTS, TooManyError
from .names import is_secret
from .places import Words, in_one_case
from .values import is_harmless

_FLAGS = re.IGNORECASE | re.ASCII
# A quoted text that does not end goes on to the end.
_QUOTED = r"(?:'(?:[^'\\]+|\\[\s\S]|'')*(?:'|\\?\Z)|\"(?:[^\"\\]+|\\[\s\S])*(?:\"|\\?\Z))"
_NESTING = re.compile(rf"{_QUOTED}|[()]")
_LIST = re.compile(
    r"(?:\bOPTIONS|(?<![\w.])(?:(?:TBL|SERDE|DB)?PROPERTIES|WITH|CREDENTIALS|ENCRYPTION))(?:\s*=)?\s*\((?!\s*SELECT\b)",
    _FLAGS,
)
_OPTION = re.compile(
    rf"(?P<name>{_QUOTED}|`[^`]+`|[\w.-]+)(?:(?P<sign>\s*(?:=>?|:)\s*|\s+)"
    rf"(?P<value>(?i:ARRAY)\s*\[[^\]]{{0,2000}}\]|(?:[neuxNEUX]&?)?{_QUOTED}|[^\s,'\"=()]+))?",
    re.ASCII,
)
_HARMLESS_NAME = re.compile(
    r"delimiter|sep|header|inferschema|mergeschema|provider|dbtable|driver|subscribe|compression|partition\w*|numpartitions|ur[il]|"
    r"location|multiline|encoding|dateformat|timestampformat|write\.[\w.-]+|read\.[\w.-]+|commit\.[\w.-]+|delta\.[\w.-]+|"
    r"scan\.[\w.-]+|sink\.[\w.-]+|lookup\.[\w.-]+|changelog[\w.-]*|snapshot[\w.-]*|table\.[\w.-]+|hoodie\.[\w.-]+|fields\.[\w.-]+|"
    r"hive\.[\w.-]+|merge[\w.-]*|file[\w.-]*|versionasof|timestampasof|startingoffsets|endingoffsets|connector|bucket[\w-]*|"
    r"primary-key|primarykey|precombinefield|bucketed_by|sorted_by|comment|description|owner|users?|username|transactional|orc\.[\w.]+|"
    r"parquet\.[\w.]+|avro\.[\w.]+|json\.[\w.-]+|csv\.[\w.-]+|serialization\.[\w.]+|field\.delim|skip\.[\w.]+|"
    r"(?:[\w-]+(?:\.[\w-]+)*[._-])?(?:format|type|mode|enabled?|interval|timeout|m?s|size|bytes|parallelism|topics?|table(?:[_-]?name)?|"
    r"database(?:-?name)?|schema(?:-name|-list)?|catalog(?:-\w+)?|hostname|host|port|path|warehouse|servers|group\.id|"
    r"startup\.mode|version|retention|num\w*|count|factor|max|min|columns?|by|pattern|zone|level|strategy|policy|class|impl|region|endpoint)",
    _FLAGS,
)
_HARMLESS_VALUE = re.compile(
    r"-?\d[\d.,_]*\s*(?:ms|s|sec|min|m|h|d|days?|hours?|minutes?|seconds?|kb|mb|gb|[kmgb])?|[\s.,;|:/\\tn_-]{0,4}|\$(?:[.\[][\w.\[\]*-]*)?|"
    r"(?:debezium-|canal-|maxwell-|ogg-)?json|avro(?:-confluent)?|csv|parquet|orc|text|protobuf|raw|(?:upsert-)?kafka|jdbc|filesystem|"
    r"hudi|iceberg|delta|paimon|datagen|print|blackhole|hive|gzip|snappy|zstd|lz4|uncompressed|all|latest(?:-offset)?|"
    r"earliest(?:-offset)?|group-offsets|initial|append|overwrite|error|ignore|utf-?8|[yMdHhmsS:/' T.-]{4,30}|\[redacted\]",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"(?:n?(?:var)?char|string|text|(?:big|small|tiny)?int|integer|long|double|float|decimal|numeric|bool(?:ean)?|bit|date|"
    r"time(?:stamp)?|datetime2?|binary|array|map|struct|row|json|uniqueidentifier)",
    _FLAGS,
)
_CALL = re.compile(
    r"\b(?:(?:try_)?aes_(?:en|de)crypt|des_(?:en|de)crypt|(?:en|de)crypt(?:_iv|byasymkey|bypassphrase|bykey|raw)?|crypt|"
    r"pgp_(?:sym|pub)_(?:en|de)crypt(?:_bytea)?|hmac(?:_?(?:md5|sha\d+))?|encrypt_literal|(?:en|de)code_with_key)\s*\(",
    _FLAGS,
)
LISTS_BY_WORD = Words(
    _LIST, {"options": 0, "properties": len("serde"), "with": 0, "credentials": 0, "encryption": 0}
)
CALLS_BY_WORD = Words(_CALL, {"crypt": len("try_aes_en"), "hmac": 0, "code_with_key": len("en")})
_MODE = re.compile(
    r"gcm|cbc|ecb|ctr|pkcs|default|none|md5|sha-?\d{1,3}|aes(?:-?\w{1,8}(?:/\w+(?::\w+)?)*)?|bf|hex|base64|utf-?8|[yMdHhmsS:/ T.-]{4,30}|",
    _FLAGS,
)
_LITERAL = re.compile(_QUOTED)
_LOGIN = re.compile(
    r"(?P<head>(?<!\S)(?:-u|--(?:proxy-)?user)(?:\s*=)?\s*['\"]?(?!\d+:\d+(?!\S))[^\s:'\"]+:)"
    r"(?P<value>(?:[^\s'\"\\]|\\(?!\\{0,63}[\"']))+)",
    _FLAGS,
)


def hide_options(text: str, gone: str) -> str:
    """Options of SQL without values that may be secrets.

    >>> hide_options("CREATE TABLE t WITH ('value.format'='json', 'code'='hunter2')", "***")
    "CREATE TABLE t WITH ('value.format'='json', 'code'='***')"
    """
    return _inside(LISTS_BY_WORD, _OPTION, text, lambda found: _hidden_option(found, gone))


def hide_arguments(text: str, gone: str) -> str:
    """Calls that encrypt, or compute with a key, without their literals.

    >>> hide_arguments("SELECT aes_encrypt(name, 'hunter2', 'GCM'), 'x' FROM t", "***")
    "SELECT aes_encrypt(name, '***', 'GCM'), 'x' FROM t"
    """
    return _inside(CALLS_BY_WORD, _LITERAL, text, lambda found: _hidden_argument(found[0], gone))


def hide_logins(text: str, gone: str) -> str:
    """Calls of curl without passwords.

    >>> hide_logins("curl -u ann:hunter2 https://x", "***")
    'curl -u ann:*** https://x'
    """
    if "curl" not in text:
        return text
    text, count = _LOGIN.subn(
        lambda found: found[0] if found["value"].startswith(gone) else found["head"] + gone,
        text,
        count=LISTS,
    )
    if count == LISTS:
        raise TooManyError
    return text


def _inside(
    opening: Words, item: "re.Pattern[str]", text: str, change: Callable[["re.Match[str]"], str]
) -> str:
    """The text with each item in parentheses changed that stands between an opening and where it closes."""
    pieces, end, lists, items = [], 0, 0, 0
    search = opening.searching(text, in_one_case(text))
    while found := search(end):
        closing = _closing(text, found.end())
        part, count = item.subn(change, text[found.end() : closing], count=ITEMS + 1)
        lists, items = lists + 1, items + count
        if lists > LISTS or items > ITEMS:
            raise TooManyError
        pieces += [text[end : found.end()], part]
        end = closing
    return "".join([*pieces, text[end:]]) if pieces else text


def _closing(text: str, start: int) -> int:
    """Where the parenthesis closes that was opened before; the end, if nowhere."""
    depth = 1
    for found in _NESTING.finditer(text, start):
        depth += (found[0] == "(") - (found[0] == ")")
        if depth == 0:
            return found.start()
    return len(text)


def _hidden_option(found: "re.Match[str]", gone: str) -> str:
    name, value = found["name"].strip("'\"`"), found["value"]
    if value is None:  # a value of several, if it is quoted
        quote = found["name"][0]
        return (
            found[0]
            if quote not in "'\"" or is_harmless_option("", name)
            else f"{quote}{gone}{quote}"
        )
    if is_harmless_option(name, value.strip("'\"")) or _TYPE.fullmatch(value):
        return found[0]
    quote = '"' if value[0] == '"' else "'"
    return f"{found['name']}{found['sign']}{quote}{gone}{quote}"


def is_harmless_option(name: str, value: str) -> bool:
    """Whether an option tells nothing.

    By its name, or by its value under a name that is no secret's.

    >>> is_harmless_option("code", "hunter2"), is_harmless_option("code", "json"), is_harmless_option("password", "12")
    (False, True, False)
    """
    if is_harmless(value):
        return True
    if len(name) > 200 or is_secret(name):
        return False
    return _HARMLESS_NAME.fullmatch(name) is not None or (
        len(value) < 60 and _HARMLESS_VALUE.fullmatch(value) is not None
    )


def _hidden_argument(literal: str, gone: str) -> str:
    content = literal[1:-1]
    return (
        literal
        if len(content) < 40 and _MODE.fullmatch(content)
        else f"{literal[0]}{gone}{literal[0]}"
    )
