"""The outline of a text: what is left of SQL without the contents of its literals and comments.

The rules look for names in the outline and take values from the text, at the same places. So no
value begins in one literal and ends in another.
"""

import re
from typing import NamedTuple


class Part(NamedTuple):
    """The content of a literal or comment at text[start:end]; `quote` is empty for a comment."""

    start: int
    end: int
    quote: str


class Outline(NamedTuple):
    """A text in lower case, where `?` stands for what is not ASCII.

    From `sql` on it is a statement, and the contents of its `parts` are blanked. Literals that are
    a single name stay. `is_part`: the text is itself a literal or comment.
    """

    text: str
    sql: int
    parts: list[Part]
    is_part: bool


_BLANKS = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*"
# A SELECT is one if its list looks like columns, or if there is a FROM behind it.
_STATEMENT = (
    r"(?:SELECT\s(?:(?=\s*(?:['\"(*\d]|[\w.]+\s*(?:[(,|=*/+-]|AS\s|--|;|\Z)))|(?P<words>))|"
    r"INSERT\s+(?:INTO|OVERWRITE)\s|"
    r"MERGE\s+INTO\s|UPDATE\s+\S+\s+(?:AS\s+\w+\s+|\w+\s+)?SET\s|DELETE\s+FROM\s|"
    r"WITH\s+[\w`\"]+\s*(?:\([^()]*\)\s*)?AS\s*\(|(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?"
    r"(?:GLOBAL\s+|TEMP(?:ORARY)?\s+|EXTERNAL\s+|MATERIALIZED\s+)*"
    r"(?:TABLE|VIEW|USER|ROLE|LOGIN|STAGE|SERVER|FUNCTION|CATALOG|DATABASE|SCHEMA|SECRET|"
    r"CONNECTION|INTEGRATION)\s|COMMENT\s+ON\s|CACHE\s+(?:LAZY\s+)?TABLE\s|"
    r"COPY\s+(?:INTO\s|\w)|UNLOAD\s*\(|EXPLAIN\s+\w|"
    # The word is prose as well: a statement has named arguments, and nothing behind them.
    r"CALL\s+[\w.`]+\s*\(\s*\w+\s*=>[^()]*(?:\([^()]*\)[^()]*)*\)\s*;?(?:\s*\Z|\s*\n\^))"
)
_BEGINS = re.compile(_BLANKS + _STATEMENT, re.IGNORECASE)
# After an error's message a statement is in capitals.
_CONTAINS = re.compile(rf"(?<=[\s:>]){_STATEMENT}")
_FROM = re.compile(r"\bFROM\b")
_FROM_IN_ANY_CASE = re.compile(_FROM.pattern, re.IGNORECASE)
_LEXEME = re.compile(
    r"""--(?P<line>[^\r\n]*)
    |/\*(?P<block>(?:[^*]|\*(?!/))*)(?:\*/)?
    |'(?P<single>(?:[^'\\]|\\[\s\S]|'')*)'?
    |"(?P<double>(?:[^"\\]|\\[\s\S]|"")*)"?
    |`[^`]*`?
    |\$(?P<tag>\w{0,60})\$(?P<dollars>(?:[^$]|\$(?!(?P=tag)\$))*)(?:\$(?P=tag)\$)?""",
    re.VERBOSE,
)
_QUOTES = {"line": "", "block": "", "single": "'", "double": '"', "dollars": "$"}
_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])(?:[nebxrf]|u&|r?b|date|time|timestamp(?:_[ln]tz)?|interval|_utf8\w*)\Z",
    re.IGNORECASE,
)
_NAME = re.compile(r"[\w.-]*(?:[ ._-]key)?", re.ASCII)


def outline_of(text: str, *, is_part: bool = False) -> Outline:
    """Return the outline of a text.

    >>> outline_of("select 'token: ' || id from T").text.replace(chr(0), "*")
    "select '*******' || id from t"
    >>> outline_of("Error in SELECT a FROM t").sql, outline_of("Select a file, token: x").sql
    (9, 23)
    """
    sql = _start_of_statement(text)
    parts = _parts_of(text, sql)
    if parts is None:
        sql, parts = len(text), []
    pieces: list[str] = []
    end = 0
    for part in parts:
        pieces += [text[end : part.start], "\0" * (part.end - part.start)]
        end = part.end
    return Outline(_in_one_case("".join([*pieces, text[end:]])), sql, parts, is_part)


def _start_of_statement(text: str) -> int:
    """Return where SQL begins in a text, or the text's length."""
    begin = _BEGINS.match(text)
    if begin and (begin["words"] is None or _FROM_IN_ANY_CASE.search(text, begin.end())):
        return 0
    has_from = None  # behind the first of such SELECTs; if not, then behind no other
    for statement in _CONTAINS.finditer(text):
        if has_from is None and statement["words"] is not None:
            has_from = _FROM.search(text, statement.end()) is not None
        if has_from or statement["words"] is None:
            return statement.start()
    return len(text)


def _parts_of(text: str, start: int) -> list[Part] | None:
    """Return the literals and comments from a place on, without those that are a name.

    Return None if a literal does not end, or if a word touches it: then the text is prose.
    """
    parts = []
    for lexeme in _LEXEME.finditer(text, start):
        if lexeme.lastgroup is None:  # a name in backticks
            continue
        part = Part(*lexeme.span(lexeme.lastgroup), _QUOTES[lexeme.lastgroup])
        if part.quote and not _stands_alone(text, lexeme, start):
            return None
        if not _NAME.fullmatch(text, part.start, part.end):
            parts.append(part)
    return parts


def _stands_alone(text: str, literal: re.Match[str], start: int) -> bool:
    """Return whether a literal ends, and no word touches it."""
    is_closed = literal.end() > literal.end(literal.lastgroup or 0)
    after = text[literal.end() : literal.end() + 1]
    before = text[max(start, literal.start() - 14) : literal.start()]
    if not is_closed or after.isalnum() or after == "_":
        return False
    return not before[-1:].isalnum() or _PREFIX.search(before) is not None


def _in_one_case(text: str) -> str:
    if not text.isascii():
        text = text.encode("ascii", "replace").decode("ascii")
    return text.lower()
