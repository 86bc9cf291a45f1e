"""The ways in which a text gives a secret its value in quotes, tags or lines of their own.

Each function looks at one mention and returns the place of its value, or None.
"""

import re

from .mentions import Mention, is_complaint
from .names import is_secret, is_secret_column
from .values import Value, bare_at, is_generated, is_mixed, quoted_at, word_at

_FLAGS = re.IGNORECASE | re.ASCII
_PREDICATE = re.compile(
    r"\b(?:ON|AND|OR|NOT|WHERE|WHEN|HAVING|IF)\s+[(\s]*\Z|[(\s][\w.]+\s*=\s*\Z", _FLAGS
)
# Columns that mean something else as often
_AMBIGUOUS = re.compile(
    r"(?:access|account|master|deploy|licen[cs]e|storage)_key\Z|authorization\Z|(?:\A|\.)tokens?\Z",
    re.IGNORECASE,
)
# Values of such columns: DE-4711, and the path of a file
_KNOWN_KEY = re.compile(
    r"[A-Z]{1,5}[-_#]\d{1,6}|(?:[\w=.-]{1,99}/){1,20}[\w=.-]{1,99}\.[a-z]\w{1,9}"
)


def assigned_text(mention: Mention) -> Value | None:
    """Find `password = 'x'`, `"api_key": "x"` and the like, unless SQL compares a column."""
    if mention.sign == "->" and not mention.close:
        return None
    value = quoted_at(mention.text, mention.at)
    if value is None or mention.close:
        return value
    if _is_comparison(mention) or _is_other_column(mention):
        return None
    content = mention.content(value)
    if _may_be_word(mention) and (_KNOWN_KEY.fullmatch(content) or not is_generated(content)):
        return None
    return value


def _is_comparison(mention: Mention) -> bool:
    """Return whether a name that is none of a secret alone stands in a condition."""
    if mention.is_strong or not (mention.in_sql or mention.is_spaced):
        return False
    return _PREDICATE.search(mention.before(20)) is not None


def _is_column(mention: Mention) -> bool:
    return mention.in_sql and mention.name.count(".") < 2


def _is_other_column(mention: Mention) -> bool:
    """Return whether SQL may have a column of this name that holds no secrets."""
    return _is_column(mention) and mention.is_strong and not is_secret_column(mention.name)


def _may_be_word(mention: Mention) -> bool:
    """Return whether what follows the name is an ordinary word as often as a secret."""
    if mention.name.lower() == "tokens" or is_complaint(mention):
        return True
    is_weak = not mention.is_strong or _AMBIGUOUS.search(mention.name) is not None
    return is_weak and mention.in_query and mention.name.count(".") < 2


_TYPE = re.compile(
    r"\s*::?\s*[\w.]+(?:\[[\w\s.,|\[\]]{0,60})?(?:\s*\|\s*[\w.]+)?\s*=\s*|"
    r"\s+(?:AS\s+)?\w+(?:\s*\([\w\s,]{0,40}\))?\s*:?=\s*",
    _FLAGS,
)


def annotated(mention: Mention) -> Value | None:
    """Find the value behind a type: `password: str = "x"`."""
    if not mention.sign and not mention.blank:
        return None
    type_ = _TYPE.match(mention.text, mention.end + len(mention.close))
    return quoted_at(mention.text, type_.end()) if type_ else None


_SETTER = re.compile(
    r"(?:option|set|conf|config|put|property|header|env|param|default|string|get)\(\s*\\*['\"]\Z",
    _FLAGS,
)
_NEXT_NAME = re.compile(r"\s*:")
_PAIR = re.compile(r"(?P<around>.{0,3})(?P<bracket>[\[(])\s*\\*['\"]\Z", re.DOTALL)
_PAIR_END = re.compile(r"\s*[\])]")
_INDEX = re.compile(r"[\w\])]\[?\Z")
# A name that no column has: DB_PASSWORD, fs.s3a.secret.key
_SETTING = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[\w-]+(?:\.[\w-]+){2,}", re.ASCII)


def is_setting(name: str) -> bool:
    """Return whether a name is one of a setting or environment variable, which no column has."""
    return _SETTING.fullmatch(name) is not None


def listed(mention: Mention) -> Value | None:
    """Find the next argument or item: `option("password", "x")`, `["--password", "x"]`, pairs."""
    if not mention.close:  # (fs.s3a.secret.key,x) and [--password, x]
        is_pair = mention.before(1) == "(" and is_setting(mention.name)
        is_label = mention.is_strong and (is_pair or mention.name.startswith("--"))
        return word_at(mention.text, mention.at) if is_label and not mention.in_sql else None
    value = quoted_at(mention.text, mention.at)
    if value is None:
        return None
    if mention.is_strong and _SETTER.search(mention.before(40)):
        return value
    if mention.name.startswith("-") and mention.before(1) in ("'", '"'):
        is_next = mention.text.startswith("-", value.start)
        return None if is_next or _NEXT_NAME.match(mention.text, value.after) else value
    pair = _PAIR.search(mention.before(40))
    if pair is None or not _PAIR_END.match(mention.text, value.after):
        return None
    around = pair["around"].rstrip()
    if pair["bracket"] == "(":
        is_pair = is_setting(mention.name) and around.endswith(("[", "),"))
    else:
        is_pair = is_setting(mention.name) or around.endswith(("[", "],"))
        is_pair = is_pair and not _INDEX.search(around)
    return value if is_pair else None


_LABEL = re.compile(
    r"(?<![\w.-])(\\*['\"])?(?:parameter_?)?(?:name|key)\1?\s*[:=]\s*\\*['\"]\Z", _FLAGS
)
_LABELLED = re.compile(r"[\s,;]+(\\*['\"])?(?:parameter_?)?val(?:ue)?\\*['\"]?\s*[:=]\s*", _FLAGS)
_LINE_LABEL = re.compile(r"(?<![\w.-])(?:name|key):[ \t]+(?:\\*['\"])?\Z", _FLAGS)
_LINE_VALUE = re.compile(
    r"[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*val(?:ue)?:[ \t]+(?:\\{0,63}\")?"
    r"(?P<value>(?:[^\s\\]|\\(?!\\{0,63}[nr\"]))(?:[^\r\n\\]|\\(?!\\{0,63}[nr\"]))*)",
    _FLAGS,
)


def labelled(mention: Mention) -> Value | None:
    """Find the value in `name='DB_PASSWORD', value='x'`, also in two lines of YAML."""
    behind = mention.end + len(mention.close)
    if mention.close and _LABEL.search(mention.before(40)):
        label = _LABELLED.match(mention.text, behind)
        value = quoted_at(mention.text, label.end()) if label else None
        if value:
            return value
        if mention.text.startswith(">", behind):  # <entry key="db.password">x</entry>
            content = _ELEMENT.match(mention.text, behind + 1)
            return Value(behind + 1, content.end(), content.end()) if content else None
    if not mention.sign and _LINE_LABEL.search(mention.before(20)):
        line = _LINE_VALUE.match(mention.text, behind)
        return Value(line.start("value"), line.end(), line.end()) if line else None
    return None


_ALIASED = re.compile(
    r"[(,\s]N?'(?P<value>[^'\\]{1,200})'\s{1,20}(?:AS\s{1,20})?[`\"\[]?\Z", _FLAGS
)


def aliased(mention: Mention) -> Value | None:
    """Find the generated literal that SQL names a secret: `SELECT 'x' AS password`."""
    if not mention.in_sql or not mention.is_strong or not is_secret_column(mention.name):
        return None
    before = mention.before(300)
    literal = _ALIASED.search(before)
    if literal is None or not is_generated(literal["value"]):
        return None
    start, end = (mention.start - len(before) + place for place in literal.span("value"))
    return Value(start, end, mention.end)


_TAG = re.compile(r"<(?P<label>(?:name|key)>\s*)?(?:[\w.-]+:)?\Z", _FLAGS)
_TAG_END = re.compile(r"(?:\s[^<>]{0,500})?>(?P<cdata>\s*<!\[CDATA\[)?")
_NAME_TAG = re.compile(
    r"\s*</(?:name|key)>(?:\s|\\+[nrt])*<(?:value|string)(?:\s[^<>]{0,500})?>"
    r"(?P<cdata>\s*<!\[CDATA\[)?",
    _FLAGS,
)
_ELEMENT = re.compile(r"\s*[^<\s][^<]*(?=</)")


def tagged(mention: Mention) -> Value | None:
    """Find the content of `<password>x</password>`, or of the element behind a name's."""
    tag = _TAG.search(mention.before(60))
    if tag is None:
        return None
    opening = (_NAME_TAG if tag["label"] else _TAG_END).match(mention.text, mention.end)
    if opening is None:
        return None
    start = opening.end()
    if opening["cdata"]:
        end = mention.text.find("]]>", start)
        end = len(mention.text) if end < 0 else end
        return Value(start, end, end)
    content = _ELEMENT.match(mention.text, start)
    return Value(start, content.end(), content.end()) if content else None


_BUILDER = re.compile(
    r"(?:set|with)?_?(?:password|passwd|pwd|passphrase|secret_?key|access_?key|api_?key|"
    r"client_?secret|secret|(?:auth|access)?_?token)\Z",
    _FLAGS,
)
_FUNCTION = re.compile(r"(?:old_)?password|passwd|pwd", re.IGNORECASE)
_ARGUMENT = re.compile(r"\(\s{0,80}")
_ONLY_ARGUMENT = re.compile(r"\s*[),]")


def argument(mention: Mention) -> Value | None:
    """Find the argument of `PASSWORD('x')`, and of a builder: `.withToken("x")`."""
    opening = _ARGUMENT.match(mention.text, mention.at)
    if opening is None or mention.close:
        return None
    name = mention.name.rpartition(".")[2]
    is_builder = "." in mention.name or name.lower().startswith(("set", "with"))
    if not _FUNCTION.fullmatch(name) and not (is_builder and _BUILDER.fullmatch(name)):
        return None
    value = quoted_at(mention.text, opening.end())
    return value if value and _ONLY_ARGUMENT.match(mention.text, value.after) else None


_IDENTIFIED = re.compile(
    r"\s+(?:WITH\s+\S+\s+)?BY(?:\s+(?:PASSWORD|VALUES))?['\"`]?(?:\s*(?:=>?|:)\s*|\s+)",
    re.IGNORECASE,
)
_CLAUSES = {
    "PASSWORD": re.compile(r"\s+FOR\s+(?=\S)[^=;\n]{1,300}=\s*", re.IGNORECASE),
    "CREDENTIALS": re.compile(r"\s+AS\s+", re.IGNORECASE),
    "IDENTIFIED": _IDENTIFIED,
}
_SELECTED = re.compile(r"\bSELECT\s(?:[^;]*,\s*)?(?:DISTINCT\s+)?\Z", _FLAGS)


def clause(mention: Mention) -> Value | None:
    """Find the value of `SET PASSWORD FOR u = 'x'`, `CREDENTIALS AS 'x'`, `IDENTIFIED BY x`."""
    pattern = _CLAUSES.get(mention.name.upper())
    words = pattern.match(mention.text, mention.end) if pattern else None
    if words is None:
        return None
    value = quoted_at(mention.text, words.end())
    if value is None and mention.name == "IDENTIFIED":
        return bare_at(mention.text, words.end())
    return value


def juxtaposed(mention: Mention) -> Value | None:
    """Find `PASSWORD 'x'` and `password...'x'`, which is no column with an alias."""
    if not mention.is_strong or not (mention.blank or mention.sign):
        return None
    value = quoted_at(mention.text, mention.at)
    if value is None:
        return None
    if mention.in_sql and not mention.close and _SELECTED.search(mention.before(300)):
        return None
    content = mention.content(value)
    if mention.name.lower() in ("token", "tokens"):  # of a parser: near token 'FROM'
        return value if len(content) >= 8 and is_generated(content) else None
    is_generated_name = is_mixed(content) or (is_generated(content) and "-" not in content)
    is_name = is_secret(content) and not is_generated_name  # secret "db-password"
    return None if is_name else value
