"""The ways in which a text gives a secret its value in quotes, tags or lines of their own.

Each function looks at one mention and returns the place of its value, or None.
"""

import re

from .mentions import Mention
from .names import SECRET_COLUMN
from .values import Value, is_generated, quoted_at

_FLAGS = re.IGNORECASE | re.ASCII
_PREDICATE = re.compile(
    r"\b(?:ON|AND|OR|NOT|WHERE|WHEN|HAVING|IF)\s+[(\s]*\Z|[(\s][\w.]+\s*=\s*\Z", _FLAGS
)
_ASSIGNS = frozenset(("=", "==", "===", "=>", ":=", ":", "->"))


_AMBIGUOUS = re.compile(
    r"(?:access|account|master|deploy|licen[cs]e)_key\Z|authorization\Z", re.IGNORECASE
)


def assigned_text(mention: Mention) -> Value | None:
    """Find `password = 'x'`, `"api_key": "x"` and the like."""
    if not mention.strength or mention.sign not in _ASSIGNS:
        return None
    if mention.sign == "->" and not mention.close:
        return None
    if not mention.close and _is_compared_column(mention):
        return None
    value = quoted_at(mention.text, mention.at)
    may_be_word = mention.is_complaint or _is_ambiguous_column(mention)
    if value and may_be_word and not is_generated(mention.text[value.start : value.end]):
        return None
    return value


def _is_ambiguous_column(mention: Mention) -> bool:
    """Return whether SQL compares or sets a column whose name means something else as often."""
    if mention.place != "sql":
        return False
    return mention.strength == "weak" or _AMBIGUOUS.search(mention.name) is not None


def _is_compared_column(mention: Mention) -> bool:
    """Return whether SQL compares or sets a column there whose name only sounds secret."""
    in_sql = mention.place == "sql"
    if mention.strength == "weak":
        is_compared = mention.is_spaced or in_sql
        return is_compared and _PREDICATE.search(mention.before(20)) is not None
    is_column = in_sql and mention.name.count(".") < 2
    return is_column and not SECRET_COLUMN.search(mention.name)


_SETTER = re.compile(
    r"(?:option|set|conf|config|put|property|header|env|param|default|string|get)\(\s*\\*['\"]\Z",
    _FLAGS,
)


def code_argument(mention: Mention) -> Value | None:
    """Find the value in a call that sets an option: `option("password", "x")`."""
    if mention.sign != "," or not mention.is_strong or not mention.close:
        return None
    if not _SETTER.search(mention.before(40)):
        return None
    return quoted_at(mention.text, mention.at)


_BUILDER = re.compile(
    r"(?:set|with)?_?(?:password|passwd|pwd|passphrase|secret_?key|access_?key|api_?key|"
    r"client_?secret|secret|(?:auth|access)?_?token)\Z",
    _FLAGS,
)
_PASSWORD = re.compile(r"(?:old_)?password|passwd|pwd", re.IGNORECASE)
_ONLY_ARGUMENT = re.compile(r"\s*[),]")


def call_argument(mention: Mention) -> Value | None:
    """Find the argument of `PASSWORD('x')`, and of a builder: `.withToken("x")`."""
    if mention.sign or mention.close or not mention.text.startswith("(", mention.at):
        return None
    name = mention.name.rpartition(".")[2]
    is_builder = "." in mention.name or name.lower().startswith(("set", "with"))
    if not _PASSWORD.fullmatch(name) and not (is_builder and _BUILDER.fullmatch(name)):
        return None
    at = mention.at + 1
    while mention.text.startswith(" ", at):
        at += 1
    value = quoted_at(mention.text, at)
    if value is None or not _ONLY_ARGUMENT.match(mention.text, value.after):
        return None
    return value


_NEXT_NAME = re.compile(r"\s*:")


def listed_option(mention: Mention) -> Value | None:
    """Find the item behind an option in a list: `["--password", "x"]`."""
    if mention.sign != "," or not mention.is_strong or not mention.close:
        return None
    if not mention.text.startswith("-", mention.start) or mention.before(1) not in ("'", '"'):
        return None
    value = quoted_at(mention.text, mention.at)
    if value is None or mention.text.startswith("-", value.start):
        return None
    return None if _NEXT_NAME.match(mention.text, value.after) else value


_PAIR = re.compile(r"(?P<around>.{0,3})(?P<bracket>[\[(])\s*\\*['\"]\Z", re.DOTALL)
_PAIR_END = re.compile(r"\s*[\])]")
_INDEX = re.compile(r"[\w\])]\[?\Z")
# A name that no column has: DB_PASSWORD, fs.s3a.secret.key
SETTING = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[\w-]+(?:\.[\w-]+){2,}", re.ASCII)


def paired(mention: Mention) -> Value | None:
    """Find the second of a list or tuple of two whose first is no column's name."""
    if mention.sign != "," or not mention.strength or not mention.close:
        return None
    pair = _PAIR.search(mention.before(40))
    value = quoted_at(mention.text, mention.at) if pair else None
    if pair is None or value is None or not _PAIR_END.match(mention.text, value.after):
        return None
    is_setting = SETTING.fullmatch(mention.name) is not None
    around = pair["around"].rstrip()
    if pair["bracket"] == "(":
        return value if is_setting and around.endswith(("[", "),")) else None
    if _INDEX.search(around):
        return None
    return value if is_setting or around.endswith(("[", "],")) else None


_LABEL = re.compile(r"(?<![\w.-])(\\*['\"])?(?:name|key)\1?\s*[:=]\s*\\*['\"]\Z", _FLAGS)
_LABELLED = re.compile(r"[\s,;]+(\\*['\"])?val(?:ue)?\\*['\"]?\s*[:=]\s*", _FLAGS)


def labelled(mention: Mention) -> Value | None:
    """Find the value in `name='DB_PASSWORD', value='x'`."""
    if mention.sign not in ("", ",") or not mention.strength or not mention.close:
        return None
    if not _LABEL.search(mention.before(40)):
        return None
    label = _LABELLED.match(mention.text, mention.end + len(mention.close))
    return quoted_at(mention.text, label.end()) if label else None


_LINE_LABEL = re.compile(r"(?<![\w.-])(?:name|key):[ \t]+(?:\\*['\"])?\Z", _FLAGS)
_LINE_VALUE = re.compile(
    r"[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*val(?:ue)?:[ \t]+(?:\\{0,63}\")?"
    r"(?P<value>(?:[^\s\\]|\\(?!\\{0,63}[nr\"]))(?:[^\r\n\\]|\\(?!\\{0,63}[nr\"]))*)",
    _FLAGS,
)


def labelled_line(mention: Mention) -> Value | None:
    """Find the value in YAML's two lines `- name: DB_PASSWORD` and `value: x`."""
    if mention.sign or not mention.strength or not _LINE_LABEL.search(mention.before(20)):
        return None
    line = _LINE_VALUE.match(mention.text, mention.end + len(mention.close))
    return Value(line.start("value"), line.end(), line.end()) if line else None


_TAG = re.compile(r"<(?P<label>(?:name|key)>\s*)?(?:[\w.-]+:)?\Z", _FLAGS)
_TAG_END = re.compile(r"(?:\s[^<>]{0,500})?>(?P<cdata>\s*<!\[CDATA\[)?")
_NAME_TAG = re.compile(
    r"\s*</(?:name|key)>(?:\s|\\+[nrt])*<(?:value|string)(?:\s[^<>]{0,500})?>"
    r"(?P<cdata>\s*<!\[CDATA\[)?",
    _FLAGS,
)
_ELEMENT = re.compile(r"[^<]+(?=</)")


def tagged(mention: Mention) -> Value | None:
    """Find the content of `<password>x</password>`, or of the element behind a name's."""
    if not mention.strength:
        return None
    tag = _TAG.search(mention.before(60))
    if tag is None:
        return None
    opening = (_NAME_TAG if tag["label"] else _TAG_END).match(mention.text, mention.end)
    if opening is None:
        return None
    start = opening.end()
    if opening["cdata"]:
        end = mention.text.find("]]>", start)
        if end < 0:
            end = len(mention.text)
        return Value(start, end, end)
    content = _ELEMENT.match(mention.text, start)
    if content is None or not content[0].strip():
        return None
    return Value(start, content.end(), content.end())


_CLAUSES = {
    "PASSWORD": re.compile(r"\s+FOR\s+(?=\S)[^=;\n]{1,300}=\s*", re.IGNORECASE),
    "CREDENTIALS": re.compile(r"\s+AS\s+", re.IGNORECASE),
}


def clause(mention: Mention) -> Value | None:
    """Find the value of `SET PASSWORD FOR u = 'x'` and `CREDENTIALS AS 'x'`."""
    pattern = _CLAUSES.get(mention.name.upper()) if not mention.sign else None
    words = pattern.match(mention.text, mention.end) if pattern else None
    return quoted_at(mention.text, words.end()) if words else None


_TYPE = re.compile(
    r"\s*::?\s*[\w.]+(?:\[[\w\s.,|\[\]]{0,60})?(?:\s*\|\s*[\w.]+)?\s*=\s*|"
    r"\s+(?:AS\s+)?\w+(?:\s*\([\w\s,]{0,40}\))?\s*:?=\s*",
    _FLAGS,
)


def annotated(mention: Mention) -> Value | None:
    """Find the value behind a type: `password: str = "x"`."""
    if mention.sign not in ("", ":", "::") or not mention.strength:
        return None
    if not mention.sign and not mention.blank:
        return None
    type_ = _TYPE.match(mention.text, mention.end + len(mention.close))
    return quoted_at(mention.text, type_.end()) if type_ else None


_SELECTED = re.compile(r"\bSELECT\s(?:[^;]*,\s*)?(?:DISTINCT\s+)?\Z", _FLAGS)


def juxtaposed(mention: Mention) -> Value | None:
    """Find `PASSWORD 'x'`, with nothing but blanks between, which is no column with an alias."""
    if mention.sign or not mention.is_strong or not mention.blank:
        return None
    value = quoted_at(mention.text, mention.at)
    if value is None:
        return None
    if mention.place == "sql" and not mention.close and _SELECTED.search(mention.before(300)):
        return None
    content = mention.text[value.start : min(value.end, value.start + 200)]
    if mention.name.lower() in ("token", "tokens"):  # of a parser: near token 'FROM'
        return value if len(content) >= 8 and is_generated(content) else None
    return None if content.lower() == mention.name.rpartition(".")[2].lower() else value


_COOKIES = re.compile(r"[^\s'\"][^\r\n'\"]*")


def cookies(mention: Mention) -> Value | None:
    """Find the rest of the line behind the header `Cookie:`."""
    if mention.sign != ":" or not mention.name.lower().endswith("cookie"):
        return None
    line = _COOKIES.match(mention.text, mention.at)
    return Value(mention.at, line.end(), line.end()) if line else None


NUMBER = re.compile(r"-?\d[\w.+-]*")


def json_number(mention: Mention) -> Value | None:
    """Find a number in a JSON object."""
    if mention.sign != ":" or not mention.is_strong or not mention.close.endswith('"'):
        return None
    number = NUMBER.match(mention.text, mention.at)
    return Value(mention.at, number.end(), number.end()) if number else None
