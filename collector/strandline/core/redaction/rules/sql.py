"""The literals and comments of an SQL text, each of which is read by itself."""

import re
from typing import NamedTuple


class Part(NamedTuple):
    """The content of a literal or comment at text[start:end]; `quote` is empty for a comment."""

    start: int
    end: int
    quote: str


_BLANKS = r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\()*"
_STATEMENT = (
    r"(?:SELECT\s(?=[\s\S]*\bFROM\b|\s*(?:['\"(*\d]|[\w.]+\s*(?:[(,|=*/+-]|AS\s|--|;|\Z)))|"
    r"INSERT\s+(?:INTO|OVERWRITE)\s|"
    r"MERGE\s+INTO\s|UPDATE\s+\S+\s+(?:AS\s+\w+\s+|\w+\s+)?SET\s|DELETE\s+FROM\s|"
    r"WITH\s+[\w`\"]+\s*(?:\([^()]*\)\s*)?AS\s*\(|(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+)?"
    r"(?:GLOBAL\s+|TEMP(?:ORARY)?\s+|EXTERNAL\s+|MATERIALIZED\s+)*"
    r"(?:TABLE|VIEW|USER|ROLE|LOGIN|STAGE|SERVER|FUNCTION|CATALOG|DATABASE|SCHEMA|SECRET|"
    r"CONNECTION|INTEGRATION)\s|COMMENT\s+ON\s|CACHE\s+(?:LAZY\s+)?TABLE\s|COPY\s+(?:INTO\s|\w)|UNLOAD\s*\(|EXPLAIN\s+\w)"
)
_BEGINS = re.compile(_BLANKS + _STATEMENT, re.IGNORECASE)
# After an error's message a statement is in capitals.
_CONTAINS = re.compile(rf"(?<=[\s:>]){_STATEMENT}")
_LEXEME = re.compile(
    r"""--(?P<line>[^\r\n]*)
    |/\*(?P<block>(?:[^*]|\*(?!/))*)(?:\*/)?
    |'(?P<single>(?:[^'\\]|\\[\s\S]|'')*)(?P<end1>'?)
    |"(?P<double>(?:[^"\\]|\\[\s\S]|"")*)(?P<end2>"?)
    |`[^`]*`?
    |\$(?P<tag>\w{0,60})\$(?P<dollars>(?:[^$]|\$(?!(?P=tag)\$))*)(?P<end3>\$(?P=tag)\$)?""",
    re.VERBOSE,
)
_GROUPS = (("single", "end1", "'"), ("double", "end2", '"'), ("dollars", "end3", "$"))
_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])(?:[nebxrf]|u&|r?b|date|time|timestamp(?:_[ln]tz)?|interval|_utf8\w*)\Z",
    re.IGNORECASE,
)


def start_of_sql(text: str) -> int:
    """Return where a statement begins in a text, or -1.

    >>> start_of_sql("select 'token: ' || id from t")
    0
    >>> start_of_sql("Error in SELECT a FROM t"), start_of_sql("Select a file, token: x")
    (9, -1)
    """
    if _BEGINS.match(text):
        return 0 if _quotes_hold(text, 0) else -1
    statement = _CONTAINS.search(text)
    if statement and _quotes_hold(text, statement.start()):
        return statement.start()
    return -1


def parts_of(text: str, start: int) -> list[Part]:
    """Return the literals and comments of the statement that begins there."""
    parts = []
    for lexeme in _LEXEME.finditer(text, start):
        for content in ("line", "block"):
            if lexeme[content] is not None:
                parts.append(Part(*lexeme.span(content), ""))
        for content, _, quote in _GROUPS:
            if lexeme[content] is not None:
                parts.append(Part(*lexeme.span(content), quote))
    return parts


class Outside:
    """The places of a text outside of a statement's literals and comments, asked in order."""

    def __init__(self, text: str, sql: int) -> None:
        self._parts = iter(parts_of(text, sql) if sql >= 0 else ())
        self._part = next(self._parts, None)

    def has(self, at: int) -> bool:
        """Return whether a place is outside; no earlier place may be asked later."""
        return self.part_at(at) is None

    def part_at(self, at: int) -> Part | None:
        """Return the literal or comment around a place."""
        while self._part and self._part.end <= at:
            self._part = next(self._parts, None)
        return self._part if self._part and self._part.start <= at else None


def _quotes_hold(text: str, start: int) -> bool:
    """Return whether each literal ends, and no word touches it: otherwise the text is prose."""
    for lexeme in _LEXEME.finditer(text, start):
        for content, closing, _ in _GROUPS:
            if lexeme[content] is None:
                continue
            after = text[lexeme.end() : lexeme.end() + 1]
            before = text[max(start, lexeme.start() - 14) : lexeme.start()]
            if not lexeme[closing] or after.isalnum() or after == "_":
                return False
            if before[-1:].isalnum() and not _PREFIX.search(before):
                return False
    return True
