"""The forms in which a text gives a secret its value, each with examples.

What it hides, and what it leaves alone.

A form looks at one mention of a name (`mentions.py`) and answers with the place of its value, or
None. It is asked only behind the signs, and of the kinds of names, that it declares: a text may
have thousands of mentions. In an example `hunter2` (or the number 271828) is the secret. The tests
go through the examples form by form.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from .mentions import SecretMention
from .values import Value, is_harmless, quoted_at

_FLAGS = re.IGNORECASE | re.ASCII


class Form(NamedTuple):
    """A form with its examples."""

    name: str
    find: Callable[[SecretMention], Value | None]
    hides: tuple[str, ...]
    keeps: tuple[str, ...]
    signs: tuple[str, ...]
    kinds: tuple[str, ...]


STRONG, ANY_SECRET, ANY_NAME = ("strong",), ("strong", "weak"), ("strong", "weak", "")
SIGNS = ("", "===", "==", "=>", "=", ":=", "::", ":", "->", ",")


def form(
    hides: tuple[str, ...],
    keeps: tuple[str, ...],
    signs: tuple[str, ...] = SIGNS,
    kinds: tuple[str, ...] = ANY_SECRET,
) -> Callable[[Callable[[SecretMention], Value | None]], Form]:
    """A form that hides and keeps these, of names of these kinds with these signs behind them."""
    return lambda find: Form(find.__name__, find, hides, keeps, signs, kinds)


_PREDICATE = re.compile(
    r"\b(?:ON|AND|OR|NOT|WHERE|WHEN|HAVING|IF)\s+[(\s]*\Z|[(\s][\w.]+\s*=\s*\Z", _FLAGS
)
_CONDITION = re.compile(r"\b(?:ON|AND|OR|WHERE|SET|WHEN|PARTITION)\s+\(?\Z", _FLAGS)


@form(
    hides=(
        "password = 'hunter2'",
        "CREATE LOGIN u WITH PASSWORD = N'hunter2'",
        'os.environ["DB_PASSWORD"] = "hunter2"',
        '{"api_key": "hunter2"}',
        '{"auth": "hunter2"}',
        'Map("password" -> "hunter2")',
        "SELECT 1 WHERE secret = 'hunter2'",
        "passcode: 'hunter2'",
        "signing_key='hunter2'",
    ),
    keeps=(
        "WHERE pass = 'yes'",
        "WHERE pass = 'adult' AND x = 1",
        "password_changed_at = '2026-11-22'",
        "password: '{{ env_var(\"DB_PASSWORD\") }}'",
        "WHERE token_type = 'card'",
        "sort(auth: x)",
    ),
    signs=("=", "==", "===", "=>", ":=", ":", "->"),
)
def assigned_text(mention: SecretMention) -> Value | None:
    """A name, a sign and a quoted value."""
    if mention.sign == "->" and not mention.close:
        return None
    if (
        mention.kind == "weak"
        and mention.is_spaced
        and not mention.close
        and _PREDICATE.search(mention.before(20))
    ):
        return None
    return quoted_at(mention.text, mention.at)


@form(
    hides=(
        'option("password", "hunter2")',
        "spark.conf.set('fs.s3a.secret.key', 'hunter2')",
        'os.environ.get("DB_PASSWORD", "hunter2")',
    ),
    keeps=('df.withColumnRenamed("token", "t")', 'df.select("password", "email")'),
    signs=(",",),
    kinds=STRONG,
)
def code_argument(mention: SecretMention) -> Value | None:
    """A call that sets an option, or asks for one with a default."""
    if not mention.close or not _CALL.search(mention.before(40)):
        return None
    return quoted_at(mention.text, mention.at)


_CALL = re.compile(
    r"(?:option|set|conf|config|put|property|header|env|param|default|string|get)\(\s*\\*['\"]\Z",
    _FLAGS,
)


@form(
    hides=('run(["mysql", "--password", "hunter2"])', "['--api-key','hunter2']"),
    keeps=('["--use-token","--verbose"]', '"option": "--password", "fields": ["x"]'),
    signs=(",",),
    kinds=STRONG,
)
def listed_option(mention: SecretMention) -> Value | None:
    """An option of a command and the next item of the list."""
    is_option = mention.text.startswith("-", mention.start) and mention.before(1) in ("'", '"')
    if not is_option or not mention.close:
        return None
    value = quoted_at(mention.text, mention.at)
    if (
        value is None
        or mention.text.startswith("-", value.start)
        or _NEXT_NAME.match(mention.text, value.after)
    ):
        return None
    return value


_NEXT_NAME = re.compile(r"\s*:")


@form(
    hides=(
        'env = ["DB_PASSWORD","hunter2"]',
        "[['user', 'u'], ['password', 'hunter2']]",
        'setAll([("a.b.c", "x"), ("spark.hadoop.fs.s3a.secret.key", "hunter2")])',
    ),
    keeps=(
        'df[["password","email"]]',
        'agg([("token", "count")])',
        "kind IN ('ACCESS_TOKEN','REFRESH_TOKEN')",
    ),
    signs=(",",),
)
def paired(mention: SecretMention) -> Value | None:
    """A list or tuple of two, whose name is no column's."""
    found = _PAIR.search(mention.before(40)) if mention.close else None
    value = quoted_at(mention.text, mention.at) if found else None
    if found is None or value is None or not _PAIR_END.match(mention.text, value.after):
        return None
    is_setting, around = SETTING.fullmatch(mention.name) is not None, found["around"].rstrip()
    if found["bracket"] == "(":
        is_pair = is_setting and around.endswith(("[", "),"))
    else:
        is_pair = not _INDEX.search(around) and (is_setting or around.endswith(("[", "],")))
    return value if is_pair else None


_PAIR = re.compile(r"(?P<around>.{0,3})(?P<bracket>[\[(])\s*\\*['\"]\Z", re.DOTALL)
_PAIR_END = re.compile(r"\s*[\])]")
_INDEX = re.compile(r"[\w\])]\[?\Z")
SETTING = re.compile(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[\w-]+(?:\.[\w-]+){2,}", re.ASCII
)  # no column's name


@form(
    hides=(
        "V1EnvVar(name='DB_PASSWORD', value='hunter2')",
        '{"key":"DB_PASSWORD","val":"hunter2"}',
        '<add key="password" value="hunter2"/>',
    ),
    keeps=("env(name='HOME', value='/root')",),
    signs=("", ","),
)
def labelled(mention: SecretMention) -> Value | None:
    """A pair of name and value, each by its label."""
    if not mention.close or not _LABEL.search(mention.before(40)):
        return None
    found = _LABELLED.match(mention.text, mention.end + len(mention.close))
    return quoted_at(mention.text, found.end()) if found else None


_LABEL = re.compile(r"(?<![\w.-])(\\*['\"])?(?:name|key)\1?\s*[:=]\s*\\*['\"]\Z", _FLAGS)
_LABELLED = re.compile(r"[\s,;]+(\\*['\"])?val(?:ue)?\\*['\"]?\s*[:=]\s*", _FLAGS)


@form(
    hides=(
        "- name: DB_PASSWORD\n  value: hunter2\n",
        "- name: 'DB_PASSWORD'\n  value: 'hunter2'\n",
    ),
    keeps=("- name: HOME\n  value: /root\n", "- name: password\n  type: string\n"),
    signs=("",),
)
def labelled_line(mention: SecretMention) -> Value | None:
    """The same in YAML, a line each."""
    if not _LINE_LABEL.search(mention.before(20)):
        return None
    found = _LINE_VALUE.match(mention.text, mention.end + len(mention.close))
    return Value(found.start("value"), found.end(), found.end()) if found else None


_LINE_LABEL = re.compile(r"(?<![\w.-])(?:name|key):[ \t]+(?:\\*['\"])?\Z", _FLAGS)
_LINE_VALUE = re.compile(
    r"[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*val(?:ue)?:[ \t]+(?:\\{0,63}\")?(?P<value>(?:[^\s\\]|\\(?!\\{0,63}[nr\"]))"
    r"(?:[^\r\n\\]|\\(?!\\{0,63}[nr\"]))*)",
    _FLAGS,
)


@form(
    hides=(
        "<password>hunter2</password>",
        '<a:password type="x">\nhunter2\n</a:password>',
        "<password><![CDATA[a]b hunter2]]></password>",
        "<name>fs.s3a.secret.key</name>\n  <value>hunter2</value>",
    ),
    keeps=(
        "login <user> <password> [<token>]",
        "struct<password:string>",
        "<name>fs.s3a.endpoint</name><value>x</value>",
    ),
    signs=SIGNS,
)
def tagged(mention: SecretMention) -> Value | None:
    """An element of XML, or a name and a value that are one each."""
    if not (opened := _TAG.search(mention.before(60))):
        return None
    found = (_NAME_TAG if opened["label"] else _TAG_END).match(mention.text, mention.end)
    if found is None:
        return None
    if found["cdata"]:
        end = mention.text.find("]]>", found.end())
        end = len(mention.text) if end < 0 else end
        return Value(found.end(), end, end)
    inside = _ELEMENT.match(mention.text, found.end())
    return (
        Value(inside.start(), inside.end(), inside.end()) if inside and inside[0].strip() else None
    )


_TAG = re.compile(r"<(?P<label>(?:name|key)>\s*)?(?:[\w.-]+:)?\Z", _FLAGS)
_TAG_END = re.compile(r"(?:\s[^<>]{0,500})?>(?P<cdata>\s*<!\[CDATA\[)?")
_NAME_TAG = re.compile(
    r"\s*</(?:name|key)>(?:\s|\\+[nrt])*<(?:value|string)(?:\s[^<>]{0,500})?>(?P<cdata>\s*<!\[CDATA\[)?",
    _FLAGS,
)
_ELEMENT = re.compile(r"[^<]+(?=</)")


@form(
    hides=("SET PASSWORD FOR 'u'@'h' = 'hunter2'", "CREDENTIALS AS 'a=b;c=hunter2'"),
    keeps=("password for that user is not there", "SELECT credentials AS c FROM t WHERE x = 'a'"),
    signs=("",),
)
def clause(mention: SecretMention) -> Value | None:
    """A clause of SQL between the word and the value."""
    pattern = _CLAUSES.get(mention.name.upper())
    found = pattern.match(mention.text, mention.end) if pattern else None
    return quoted_at(mention.text, found.end()) if found else None


_CLAUSES = {
    "PASSWORD": re.compile(r"\s+FOR\s+(?=\S)[^=;\n]{1,300}=\s*", re.IGNORECASE),
    "CREDENTIALS": re.compile(r"\s+AS\s+", re.IGNORECASE),
}


@form(
    hides=(
        'def connect(password: Optional[str] = "hunter2"): ...',
        "password: str | None='hunter2'",
        "DECLARE @id INT, @password NVARCHAR(50) = N'hunter2'",
    ),
    keeps=('def connect(password: str, x: str = "a"): ...', "SELECT token FROM t WHERE x = 'a'"),
    signs=("", ":", "::"),
)
def annotated(mention: SecretMention) -> Value | None:
    """A declaration with a type between name and value."""
    if not mention.sign and not mention.blank:
        return None
    found = _TYPE.match(mention.text, mention.end + len(mention.close))
    return quoted_at(mention.text, found.end()) if found else None


_TYPE = re.compile(
    r"\s*::?\s*[\w.]+(?:\[[\w\s.,|\[\]]{0,60})?(?:\s*\|\s*[\w.]+)?\s*=\s*|\s+(?:AS\s+)?\w+(?:\s*\([\w\s,]{0,40}\))?\s*:?=\s*",
    _FLAGS,
)


@form(
    hides=(
        "OPTIONS (password 'hunter2')",
        "ALTER ROLE a PASSWORD E'hunter2'",
        "SECRET_ACCESS_KEY 'hunter2'",
    ),
    keeps=(
        "Syntax error near token 'FROM'",
        "Did not pass 'x'",
        'SELECT t.password "Password" FROM t',
    ),
    signs=("",),
    kinds=STRONG,
)
def juxtaposed(mention: SecretMention) -> Value | None:
    """A name and a quoted value with nothing but blanks between."""
    if not mention.blank or mention.name.lower() in ("token", "tokens"):
        return None
    value = quoted_at(mention.text, mention.at)
    is_alias = (
        value is not None
        and mention.text[value.start : value.end].lower() == mention.name.rpartition(".")[2].lower()
    )
    return None if is_alias else value


@form(
    hides=(
        "ALTER USER a IDENTIFIED BY hunter2",
        "IDENTIFIED WITH sha256 BY 'hunter2'",
        "IDENTIFIED BY VALUES 'hunter2'",
    ),
    keeps=("the row is identified by its id and 'x'",),
    signs=("",),
    kinds=("",),
)
def identified(mention: SecretMention) -> Value | None:
    """The clause of CREATE USER."""
    if mention.name.upper() != "IDENTIFIED" or not (
        found := _IDENTIFIED.match(mention.text, mention.end)
    ):
        return None
    quoted = quoted_at(mention.text, found.end())
    if quoted is None and mention.name != "IDENTIFIED":
        return None
    return quoted or mention.bare_at(found.end())


_IDENTIFIED = re.compile(
    r"\s+(?:WITH\s+\S+\s+)?BY(?:\s+(?:PASSWORD|VALUES))?['\"`]?(?:\s*(?:=>?|:)\s*|\s+)",
    re.IGNORECASE,
)


@form(
    hides=("curl -H 'Cookie: a=1; session=hunter2' https://x",),
    keeps=("session_cookie = 'x'", "Cookie:"),
    signs=(":",),
    kinds=ANY_NAME,
)
def cookies(mention: SecretMention) -> Value | None:
    """A header of HTTP, to the end of its line."""
    if not mention.name.lower().endswith("cookie"):
        return None
    found = _COOKIES.match(mention.text, mention.at)
    return Value(mention.at, found.end(), found.end()) if found else None


_COOKIES = re.compile(r"[^\s'\"][^\r\n'\"]*")


@form(
    hides=('{"password": 271828}',),
    keeps=('{"max_tokens": 5}', '{"password_length": 12}'),
    signs=(":",),
    kinds=STRONG,
)
def json_number(mention: SecretMention) -> Value | None:
    """A number in a JSON object.

    It goes with the quotes that it did not have (`hide.py` adds them).
    """
    if not mention.close.endswith('"'):
        return None
    found = NUMBER.match(mention.text, mention.at)
    return Value(mention.at, found.end(), found.end()) if found else None


NUMBER = re.compile(r"-?\d[\w.+-]*")


def is_condition(mention: SecretMention) -> bool:
    """Whether a condition or an assignment of SQL begins right before the name."""
    return _CONDITION.search(mention.before(20)) is not None


def harmless(text: str, value: Value) -> bool:
    """Whether the value there tells nothing."""
    return is_harmless(text[value.start : value.end])


TEXT_FORMS = (
    *(
        assigned_text,
        code_argument,
        listed_option,
        paired,
        labelled,
        labelled_line,
        tagged,
        clause,
        annotated,
        juxtaposed,
    ),
    *(identified, cookies, json_number),
)
