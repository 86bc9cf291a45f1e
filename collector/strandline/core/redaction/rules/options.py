"""Lists of options in SQL, and calls of functions that take keys.

Here the place says what a value is, not its name. Options are kept by an allow-list: those whose
name or value is known to be harmless. Of a function that encrypts, every quoted argument is hidden
but the names of modes. Of a table function or engine that takes credentials, these are hidden.
"""

import re
from collections.abc import Callable
from functools import partial

from .limits import OPTIONS, TooManyError
from .names import is_secret
from .sql import Outside
from .values import is_harmless

_FLAGS = re.IGNORECASE | re.ASCII
# A quoted text that does not end goes on to the end.
QUOTED = r"(?:'(?:[^'\\]+|\\[\s\S]|'')*(?:'|\\?\Z)|\"(?:[^\"\\]+|\\[\s\S])*(?:\"|\\?\Z))"
_NESTING = re.compile(rf"{QUOTED}|[()]")
_LIST = re.compile(
    r"(?:\bOPTIONS|(?<![\w.])(?:(?:TBL|SERDE|DB)?PROPERTIES|WITH|CREDENTIALS|"
    r"ENCRYPTION))(?:\s*=)?\s*\((?!\s*SELECT\b)",
    _FLAGS,
)
_OPTION = re.compile(
    rf"(?P<name>{QUOTED}|`[^`]+`|[\w.-]+)(?:(?P<sign>\s*(?:=>?|:)\s*|\s+)"
    rf"(?P<value>(?i:ARRAY)\s*\[[^\]]{{0,2000}}\]|(?:[neuxNEUX]&?)?{QUOTED}|[^\s,'\"=()]+))?",
    re.ASCII,
)
_HARMLESS_NAME = re.compile(
    r"delimiter|sep|header|inferschema|mergeschema|provider|dbtable|driver|subscribe|compression|"
    r"partition\w*|numpartitions|ur[il]|"
    r"location|multiline|encoding|dateformat|timestampformat|write\.[\w.-]+|read\.[\w.-]+|"
    r"commit\.[\w.-]+|delta\.[\w.-]+|"
    r"scan\.[\w.-]+|sink\.[\w.-]+|lookup\.[\w.-]+|changelog[\w.-]*|snapshot[\w.-]*|table\.[\w.-]+|"
    r"hoodie\.[\w.-]+|fields\.[\w.-]+|"
    r"hive\.[\w.-]+|merge[\w.-]*|file[\w.-]*|versionasof|timestampasof|startingoffsets|"
    r"endingoffsets|connector|bucket[\w-]*|"
    r"primary[._-]?key|storagelevel|precombinefield|bucketed_by|sorted_by|comment|description|owner|"
    r"users?|username|transactional|orc\.[\w.]+|"
    r"parquet\.[\w.]+|avro\.[\w.]+|json\.[\w.-]+|csv\.[\w.-]+|serialization\.[\w.]+|field\.delim|"
    r"skip\.[\w.]+|"
    r"(?:[\w-]+(?:\.[\w-]+)*[._-])?(?:format|type|mode|enabled?|interval|timeout|m?s|size|bytes|"
    r"parallelism|topics?|table(?:[_-]?name)?|"
    r"database(?:-?name)?|schema(?:-name|-list)?|catalog(?:-\w+)?|hostname|host|port|path|"
    r"warehouse|servers|group\.id|"
    r"startup\.mode|version|retention|num\w*|count|factor|max|min|columns?|by|pattern|zone|level|"
    r"strategy|policy|class|impl|region|endpoint)",
    _FLAGS,
)
_HARMLESS_VALUE = re.compile(
    r"-?\d[\d.,_]*\s*(?:ms|s|sec|min|m|h|d|days?|hours?|minutes?|seconds?|kb|mb|gb|[kmgb])?|"
    r"[\s.,;|:/\\tn_-]{0,4}|\$(?:[.\[][\w.\[\]*-]*)?|"
    r"(?:debezium-|canal-|maxwell-|ogg-)?json|avro(?:-confluent)?|csv|parquet|orc|text|protobuf|"
    r"raw|(?:upsert-)?kafka|jdbc|filesystem|"
    r"hudi|iceberg|delta|paimon|datagen|print|blackhole|hive|gzip|snappy|zstd|lz4|uncompressed|"
    r"all|latest(?:-offset)?|"
    r"earliest(?:-offset)?|group-offsets|initial|append|overwrite|error|ignore|utf-?8|"
    r"[yMdHhmsS:/' T.-]{4,30}|\[redacted\]",
    re.IGNORECASE,
)
_TYPE = re.compile(
    r"(?:n?(?:var)?char|string|text|(?:big|small|tiny)?int|integer|long|double|float|decimal|"
    r"numeric|bool(?:ean)?|bit|date|"
    r"time(?:stamp)?|datetime2?|binary|array|map|struct|row|json|uniqueidentifier)",
    _FLAGS,
)
_CALL = re.compile(
    r"\b(?:(?:try_)?aes_(?:en|de)crypt|des_(?:en|de)crypt|(?:en|de)crypt(?:_iv|byasymkey|"
    r"bypassphrase|bykey|raw)?|crypt|"
    r"pgp_(?:sym|pub)_(?:en|de)crypt(?:_bytea)?|hmac(?:_?(?:md5|sha\d+))?|encrypt_literal|(?:en|"
    r"de)code_with_key)\s*\(",
    _FLAGS,
)
_MODE = re.compile(
    r"gcm|cbc|ecb|ctr|pkcs|default|none|md5|sha-?\d{1,3}|aes(?:-?\w{1,8}(?:/\w+(?::\w+)?)*)?|bf|"
    r"hex|base64|utf-?8|[yMdHhmsS:/ T.-]{4,30}|",
    _FLAGS,
)
_LITERAL = re.compile(QUOTED)

# Functions and engines of ClickHouse that take credentials
_STORAGE = re.compile(
    r"(?<![\w.])(?:s3(?:Cluster)?|gcs|oss|cosn|iceberg(?:S3)?|deltaLake|hudi|S3Queue)\s{0,20}\(",
    re.IGNORECASE,
)
_SERVER = re.compile(
    r"(?<![\w.])(?:mysql|postgresql|mongodb|remote(?:Secure)?|azureBlobStorage|redis)\s{0,20}\(",
    re.IGNORECASE,
)
_SERVERS = ("mysql", "postgresql", "mongodb", "remote", "azureblob", "redis")
_DATA_FORMAT = re.compile(
    r"auto|nosign|[\w]*(?:csv|tsv|json|parquet|orc|avro|arrow|native|tabseparated|values|lines?|"
    r"raw\w*|rowbinary|protobuf|msgpack|xml|template|regexp|withnames(?:andtypes)?|eachrow)|"
    r"none|gz(?:ip)?|zstd?|br(?:otli)?|xz|lz4|bz2|snappy|deflate|[\w]+ [\w()]+(?:\s*,\s*[\s\S]*)?",
    re.IGNORECASE,
)
_HOST = re.compile(r"[\w.-]+:\d{1,5}|\{[^{}]{1,200}\}|[\w.-]+\.[\w.-]+|DefaultEndpoints[\s\S]*")


def hide_options(text: str, gone: str, sql: int = -1) -> str:
    """Return the text without the values of options that may be secrets.

    >>> hide_options("CREATE TABLE t WITH ('value.format'='json', 'code'='hunter2')", "***")
    "CREATE TABLE t WITH ('value.format'='json', 'code'='***')"
    """

    def hidden(options: str) -> str:
        hide = partial(_hidden_option, gone=gone)
        changed, count = _OPTION.subn(hide, options, count=OPTIONS)
        if count == OPTIONS:
            raise TooManyError
        return changed

    return _change_inside(text, _LIST, hidden, sql) if "(" in text else text


def hide_arguments(text: str, gone: str, sql: int = -1) -> str:
    """Return the text without the keys that functions take.

    >>> hide_arguments("SELECT aes_encrypt(name, 'hunter2', 'GCM'), 'x' FROM t", "***")
    "SELECT aes_encrypt(name, '***', 'GCM'), 'x' FROM t"
    >>> hide_arguments("s3('https://b/x.csv', 'AKIA', 'hunter2', 'CSV')", "***")
    "s3('https://b/x.csv', '***', '***', 'CSV')"
    """

    def hidden(arguments: str) -> str:
        return _LITERAL.sub(lambda literal: _hidden_argument(literal[0], gone), arguments)

    lowered = text.lower()
    if "crypt" in lowered or "hmac" in lowered or "with_key" in lowered:
        text = _change_inside(text, _CALL, hidden, sql)
    if "://" in text:
        text = _change_inside(text, _STORAGE, lambda part: _hide_storage_keys(part, gone), sql)
    if any(word in lowered for word in _SERVERS):
        text = _change_inside(text, _SERVER, lambda part: _hide_server_password(part, gone), sql)
    return text


def is_harmless_option(name: str, value: str) -> bool:
    """Return whether an option is harmless by its name, or by its value unless the name is secret.

    >>> is_harmless_option("code", "hunter2"), is_harmless_option("code", "json")
    (False, True)
    >>> is_harmless_option("password", "12")
    False
    """
    if is_harmless(value):
        return True
    if len(name) > 200 or is_secret(name):
        return False
    if _HARMLESS_NAME.fullmatch(name):
        return True
    return len(value) < 60 and _HARMLESS_VALUE.fullmatch(value) is not None


def _change_inside(
    text: str, opening: "re.Pattern[str]", change: Callable[[str], str], sql: int
) -> str:
    """Return the text, changed between each opening and the parenthesis that closes it.

    From `sql` on, an opening inside a literal or comment is passed over.
    """
    start = opening.search(text)
    if start is None:
        return text
    outside = Outside(text, sql)
    pieces: list[str] = []
    end = 0
    while start:
        closing = start.end()
        if outside.has(start.start()):
            closing = _closing(text, start.end())
            pieces += [text[end : start.end()], change(text[start.end() : closing])]
            end = closing
        start = opening.search(text, closing)
    return "".join([*pieces, text[end:]]) if pieces else text


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


def _hidden_option(option: "re.Match[str]", gone: str) -> str:
    name, value = option["name"].strip("'\"`"), option["value"]
    if value is None:  # one of several values, if it is quoted
        quote = option["name"][0]
        if quote not in "'\"" or is_harmless_option("", name):
            return option[0]
        return f"{quote}{gone}{quote}"
    if is_harmless_option(name, value.strip("'\"")) or _TYPE.fullmatch(value):
        return option[0]
    quote = '"' if value[0] == '"' else "'"
    return f"{option['name']}{option['sign']}{quote}{gone}{quote}"


def _hidden_argument(literal: str, gone: str) -> str:
    content = literal[1:-1]
    if len(content) < 40 and _MODE.fullmatch(content):
        return literal
    return f"{literal[0]}{gone}{literal[0]}"


def _hide_storage_keys(arguments: str, gone: str) -> str:
    """Hide the key, secret and session token behind an address."""
    literals = list(_LITERAL.finditer(arguments))
    address = next((n for n, word in enumerate(literals) if "://" in word[0]), None)
    if address is None:
        return arguments
    keys = []
    for word in literals[address + 1 : address + 4]:
        if _DATA_FORMAT.fullmatch(word[0][1:-1]):
            break
        keys.append(word)
    return _hide_literals(arguments, keys if len(keys) > 1 else [], gone)


def _hide_server_password(arguments: str, gone: str) -> str:
    """Hide the password, the last or fifth literal behind a server's address."""
    literals = list(_LITERAL.finditer(arguments))
    if len(literals) < 4 or not _HOST.fullmatch(literals[0][0][1:-1]):
        return arguments
    return _hide_literals(arguments, [literals[min(4, len(literals) - 1)]], gone)


def _hide_literals(text: str, literals: "list[re.Match[str]]", gone: str) -> str:
    pieces: list[str] = []
    end = 0
    for word in literals:
        pieces += [text[end : word.start() + 1], gone, word[0][0]]
        end = word.end()
    return "".join([*pieces, text[end:]])
