"""Secrets that an INSERT puts into columns with a secret's name."""

import re

from .names import SECRET_COLUMN
from .options import QUOTED
from .sql import Outside
from .values import is_generated, is_harmless

_FLAGS = re.IGNORECASE | re.ASCII
_INSERT = re.compile(
    r"\b(?:INSERT|REPLACE)\s{1,20}(?:(?:INTO|OVERWRITE|IGNORE|TABLE)\s{1,20}){0,3}[^\s()]{1,300}\s{0,20}"
    r"\((?P<columns>[^()]{1,5000})\)\s{0,20}VALUES\s{0,20}(?=\()",
    _FLAGS,
)
_LEXEME = re.compile(rf"{QUOTED}|[(),]")
_NEXT_ROW = re.compile(r"\s{0,20},\s{0,20}\(")
_OTHER_WORDS = frozenset(("token", "tokens"))


def hide_inserted(text: str, gone: str, sql: int = -1) -> str:
    """Return the text without the literals that an INSERT puts into columns of secrets.

    >>> hide_inserted("INSERT INTO users (name, password) VALUES ('ann', 'hunter2')", "***")
    "INSERT INTO users (name, password) VALUES ('ann', '***')"
    """
    pieces: list[str] = []
    end = 0
    outside = Outside(text, sql)
    insert = _INSERT.search(text)
    while insert:
        at = insert.end()
        columns = [column.strip(' \t\r\n`"[]') for column in insert["columns"].split(",")]
        if any(map(SECRET_COLUMN.search, columns)) and outside.has(insert.start()):
            literals, at = _secret_literals(text, at, columns)
            for start, stop in literals:
                pieces += [text[end : start + 1], gone]
                is_closed = stop - start > 1 and text[stop - 1] == text[start]
                end = stop - 1 if is_closed else stop
        insert = _INSERT.search(text, at)
    return "".join([*pieces, text[end:]]) if pieces else text


def _secret_literals(
    text: str, at: int, columns: "list[str]"
) -> "tuple[list[tuple[int, int]], int]":
    """Return the secret literals in rows like `('a', 1), ('b', 2)`, and where the rows end."""
    literals: list[tuple[int, int]] = []
    depth = column = 0
    for lexeme in _LEXEME.finditer(text, at):
        sign = lexeme[0]
        if sign == "(":
            depth += 1
            column = column if depth > 1 else 0
        elif sign == ")":
            depth -= 1
            if depth == 0 and not _NEXT_ROW.match(text, lexeme.end()):
                return literals, lexeme.end()
        elif sign == ",":
            column += depth == 1
        elif depth != 1 or column >= len(columns):
            continue
        elif _is_secret(columns[column], sign[1:-1]):
            literals.append(lexeme.span())
    return literals, len(text)


def _is_secret(column: str, value: str) -> bool:
    if not SECRET_COLUMN.search(column) or not value or is_harmless(value):
        return False
    return column.lower() not in _OTHER_WORDS or is_generated(value)
