"""The forms whose value has no quotes: of shells, connections, configurations and logs.

As in `forms.py`, with examples.

In SQL what stands so is a column. So a value that is called like one stays where the text compares
or assigns columns.
"""

import re

from .forms import STRONG, form, is_condition
from .mentions import SecretMention
from .names import ENDING_NAME, SECRET_NAME
from .values import Value

_FLAGS = re.IGNORECASE | re.ASCII
_COLUMN = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)+", _FLAGS)
_IDENTIFIER = re.compile(r"[a-z_]\w*", _FLAGS)
_GENERATED = re.compile(r"\AeyJ|[^.]{40}")  # a JSON Web Token is three parts with dots between them
_MIXED = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{6,}")
_STATEMENT = re.compile(r"\b(?:SET|ON|WHERE)\s", _FLAGS)
_QUERY = re.compile(
    r"\b(?:SELECT|UPDATE|MERGE|WHERE|FROM|JOIN|INSERT|SET|ON|AND|OR|WHEN|CREATE|TABLE|CASE)\b",
    _FLAGS,
)
_TOKEN_COLUMN = re.compile(r"(?:\w*[_-])?token_?(?:id|name|ur[il]|endpoint)", _FLAGS)
_CLASS = re.compile(
    r"(?:[a-z]\w*\.){2,}[A-Z]+[a-z]\w*", re.ASCII
)  # of an exception: a.b.InvalidToken
_COMPLAINT = re.compile(
    r"(?:expected|near|valid|illegal|matched|missing|extraneous|unknown|input|at) \Z", re.IGNORECASE
)
# What a name may be followed by that is no secret: a type, or nothing.
_NO_VALUE = re.compile(
    r"(?:str|string|(?:var|nvar)?char|text|(?:big|small|tiny)?int|integer|long|double|float|decimal|numeric|bool|boolean|"
    r"bytes?|binary|date|timestamp|array|map|struct|list|dict|any|optional|none|null|true|false)\b",
    _FLAGS,
)
_STARTS_WORD = frozenset("'\"`;:,(&?[{|\\")
_STARTS_VALUE = re.compile(r"[^\s'\",;()&{}\[\]<>|=-]")


def _stands_alone(mention: SecretMention) -> bool:
    """Whether the name begins a word of the text; it is no part of a path: `/password=1/`."""
    before = mention.before(1)
    return not before or before.isspace() or before in _STARTS_WORD


def _value(mention: SecretMention) -> Value | None:
    return mention.bare_at(mention.at) if _STARTS_VALUE.match(mention.text, mention.at) else None


def _content(mention: SecretMention, value: Value) -> str:
    return mention.text[value.start : min(value.end, value.start + 200)]


def _is_column(mention: SecretMention, content: str) -> bool:
    """Whether what a name without dots is compared with, or gets, is a column or a count."""
    name = mention.name.lower()
    if content == mention.name or _TOKEN_COLUMN.fullmatch(name):
        return True
    if "token" in name and content.isdigit() and (name.endswith("s") or is_condition(mention)):
        return True
    if _COLUMN.fullmatch(content) and not _GENERATED.search(content):
        return is_condition(mention) or SECRET_NAME.search(content.rpartition(".")[2]) is not None
    return (
        is_condition(mention)
        and _IDENTIFIER.fullmatch(content) is not None
        and not _MIXED.fullmatch(content)
    )


@form(
    hides=("Driver={SQL Server};Server=x;PWD={my hunter2};", "UID=sa;PWD={hunter2}"),
    keeps=("password={{ var('x') }}", "f'{user} password={password}'"),
    signs=("=",),
)
def braced(mention: SecretMention) -> Value | None:
    """A part of a connection of ODBC, with brackets around it."""
    if mention.is_spaced or mention.before(1) != ";":
        return None
    found = _BRACES.match(mention.text, mention.at)
    return Value(found.start(1), found.end(1), found.end()) if found else None


_PLACEHOLDER = re.compile(r"\{\{|\{[\w.]*\}")  # of a template, or of an f-string
_BRACES = re.compile(r"\{(?!\{)([^{}\n]*)\}")


@form(
    hides=(
        "mysqldump --password=hunter2 db",
        "export AWS_SECRET_ACCESS_KEY=hunter2",
        "AccountName=a;AccountKey=hunter2;EndpointSuffix=x",
        "grant_type=x&client_secret=hunter2&scope=y",
        "JdbcOptions[client_secret=hunter2, url=x]",
        "signing_key=hunter2",
        "DB_PASS=hunter2 ./run",
    ),
    keeps=(
        "/lake/table/password=1/token=2/day=2026-11-22",
        "ON a.id = b.id AND token=b.id",
        "connect(password=password, token=self.token)",
        "ALTER TABLE t DROP PARTITION (token=5)",
        "max_tokens=512",
        "WHERE (token_id=b.token_id)",
    ),
    signs=("=",),
)
def assigned(mention: SecretMention) -> Value | None:
    """`name=value` without blanks, the name without dots."""
    if mention.is_spaced or mention.close or not _stands_alone(mention):
        return None
    if (
        "." in mention.name
        or mention.text.startswith((">", "="), mention.at)
        or _PLACEHOLDER.match(mention.text, mention.at)
    ):
        return None
    value = mention.bare_at(mention.at)
    return None if value is None or _is_column(mention, _content(mention, value)) else value


@form(
    hides=(
        "java -D fs.s3a.secret.key=hunter2 x",
        "spark-submit --conf spark.hadoop.fs.s3a.secret.key=hunter2 job.py",
        "database.user=u\ndatabase.password=hunter2\n",
        "{database.user=u, database.password=hunter2}",
        "java -Djavax.net.ssl.keyStorePassword=hunter2",
    ),
    keeps=(
        "SELECT a.token, 'x' FROM a JOIN b ON a.token=b.token",
        "UPDATE SET t.n=s.n, t.token=s.value",
        "ON bank.accounts.token=bank.cards.token",
        "JOIN b ON a.token=x",
    ),
    signs=("=",),
)
def assigned_property(mention: SecretMention) -> Value | None:
    """`a.b.name=value` without blanks.

    Not a column that is compared with another, or that an UPDATE sets.
    """
    if mention.is_spaced or mention.close or "." not in mention.name:
        return None
    value = mention.bare_at(mention.at) if _stands_alone(mention) else None
    if value is None or mention.text.startswith((">", "="), mention.at):
        return None
    content, dots = _content(mention, value), mention.name.count(".")
    if _COLUMN.fullmatch(content) and not _GENERATED.search(content):
        if SECRET_NAME.search(content.rpartition(".")[2]):
            return None
        return None if dots == 1 and _STATEMENT.search(mention.before(100)) else value
    is_assigned = (
        dots <= 2 and _IDENTIFIER.fullmatch(content) is not None and not _MIXED.fullmatch(content)
    )
    return None if is_assigned and _STATEMENT.search(mention.before(100)) else value


@form(
    hides=(
        "SET spark.hadoop.fs.s3a.secret.key = hunter2; SELECT 1",
        "SET spark.databricks.token= hunter2",
    ),
    keeps=("UPDATE t SET a.token = b.x", "SET spark.sql.ansi.enabled = true"),
    signs=("=",),
)
def set_statement(mention: SecretMention) -> Value | None:
    """A property that SQL sets, and not the column that an UPDATE does."""
    if mention.name.count(".") < 2 or not _SET.search(mention.before(20)):
        return None
    return _value(mention)


_SET = re.compile(r"\bSET\s+\Z", _FLAGS)


@form(
    hides=("db.user = ann\ndb.password = hunter2\n", "[x]\npassword = hunter2"),
    keeps=(
        "SELECT 1\nFROM a JOIN b ON\npassword = b",
        "UPDATE t SET\n  token = s",
        "password = input()",
    ),
    signs=("=",),
    kinds=STRONG,
)
def configured_line(mention: SecretMention) -> Value | None:
    """A line of its own in a file of settings, blanks around the sign; no line of a statement."""
    if not mention.is_spaced or mention.close:
        return None
    if not _LINE_START.search(mention.before(20)) or _QUERY.search(mention.before(300)):
        return None
    value = _value(mention)
    return value if value and _LINE_END.match(mention.text, value.after) else None


_LINE_START = re.compile(r"(?:\A|[\r\n])[ \t]*\Z")
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\Z)")


@form(
    hides=(
        "user: ann\npassword: hunter2\n",
        "s3.access-key: u\ns3.secret-key: hunter2\n",
        "Authorization: Bearer hunter2",
        "passcode: hunter2",
        "api key: hunter2",
        "fs.azure.account.key.a.dfs.core.windows.net: hunter2",
        "login with password:hunter2 failed",
    ),
    keeps=(
        "struct<password:string,token:bigint>",
        "root\n |-- password: string (nullable = true)\n |-- token: integer",
        "Caused by: org.apache.hadoop.security.token.InvalidToken: expired",
        "Unexpected token: x",
        "Total tokens: 5",
        "password_changed_at: 2026-11-22",
        "columns: a.password: string, b.token: bigint",
    ),
    signs=(":",),
    kinds=STRONG,
)
def stated(mention: SecretMention) -> Value | None:
    """`name: value`, of YAML, headers and logs.

    No column with its type, no complaint about a token, no class.
    """
    if mention.blank or mention.close or not _stands_alone(mention):
        return None
    value = _value(mention)
    if value is None or _NO_VALUE.match(mention.text, mention.at) or _CLASS.fullmatch(mention.name):
        return None
    content = _content(mention, value)
    if mention.name.lower() == "token" and _COMPLAINT.search(mention.before(20)):
        return None
    if not ENDING_NAME.search(mention.name) or not mention.gap:
        return value if _MIXED.fullmatch(content) else None
    if (
        _COLUMN.fullmatch(content)
        and not _GENERATED.search(content)
        and SECRET_NAME.search(content.rpartition(".")[2])
    ):
        return None
    return None if content == mention.name or _is_count(mention.name, content) else value


def _is_count(name: str, content: str) -> bool:
    return "token" in name.lower() and content.isdigit() and name[-1] in "sS"


@form(
    hides=(
        "Map(user -> ann, password -> hunter2)",
        "Map(fs.s3a.secret.key -> hunter2)",
        "fs.s3a.secret.key => hunter2",
    ),
    keeps=(
        "transform(tokens, token -> upper(token))",
        "filter(tokens, token -> token <> 'x')",
        "tokens.map(token => token.trim)",
    ),
    signs=("->", "=>"),
    kinds=STRONG,
)
def mapped(mention: SecretMention) -> Value | None:
    """An entry of a map as Scala prints it; no lambda."""
    if mention.close or not mention.is_spaced:
        return None
    if mention.sign == "=>" and mention.name.count(".") < 2:
        return None  # a function: token => upper(token)
    value = (
        _value(mention) if ENDING_NAME.search(mention.name) or mention.name.count(".") > 1 else None
    )
    is_call = (
        value is not None and "token" in mention.name and mention.text.startswith("(", value.after)
    )
    is_lambda = is_call or mention.text.startswith(f"{mention.name} ", mention.at)
    return None if is_lambda else value


@form(
    hides=("mysqldump --password hunter2 db", "job --api-key hunter2"),
    keeps=("job --password --verbose", "a-token b"),
    signs=("",),
    kinds=STRONG,
)
def option(mention: SecretMention) -> Value | None:
    """An option of a command and its value."""
    is_option = mention.text.startswith("-", mention.start) and _stands_alone(mention)
    if not is_option or not mention.blank or "." in mention.name:
        return None
    return _value(mention)


BARE_FORMS = (
    braced,
    assigned,
    assigned_property,
    set_statement,
    configured_line,
    stated,
    mapped,
    option,
)
