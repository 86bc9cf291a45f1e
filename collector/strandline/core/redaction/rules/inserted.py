"""Secrets that an INSERT puts into columns with a secret's name."""

import re

from .names import is_secret_column
from .sql import Outline
from .values import QUOTED, is_generated, is_harmless

_INSERT = re.compile(
    r"\b(?:insert|replace)\s{1,20}(?:(?:into|overwrite|ignore|table)\s{1,20}){0,3}[^\s()]{1,300}\s{0,20}"
    r"\((?P<columns>[^()]{1,5000})\)\s{0,20}values\s{0,20}(?=\()"
)
_LEXEME = re.compile(rf"{QUOTED}|[(),]")
_NEXT_ROW = re.compile(r"\s{0,20},\s{0,20}\(")


def hide_inserted(text: str, outline: Outline, gone: str) -> str:
    """Return the text without the literals that an INSERT puts into columns of secrets.

    >>> from .sql import outline_of
    >>> text = "INSERT INTO users (name, password) VALUES ('ann', 'hunter2')"
    >>> hide_inserted(text, outline_of(text), "***")
    "INSERT INTO users (name, password) VALUES ('ann', '***')"
    """
    if "values" not in outline.text:
        return text
    pieces: list[str] = []
    end = 0
    insert = _INSERT.search(outline.text)
    while insert:
        at = insert.end()
        columns = [column.strip(' \t\r\n`"[]') for column in insert["columns"].split(",")]
        if any(map(is_secret_column, columns)):
            literals, at = _secret_literals(text, at, columns)
            for literal in literals:
                pieces += [text[end : literal.start() + 1], gone]
                is_closed = len(literal[0]) > 1 and literal[0][-1] == literal[0][0]
                end = literal.end() - is_closed
        insert = _INSERT.search(outline.text, at)
    return "".join([*pieces, text[end:]]) if pieces else text


def _secret_literals(text: str, at: int, columns: list[str]) -> tuple[list[re.Match[str]], int]:
    """Return the secret literals in rows like `('a', 1), ('b', 2)`, and where the rows end."""
    literals: list[re.Match[str]] = []
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
        elif column < len(columns) and _is_secret(columns[column], sign[1:-1], depth):
            literals.append(lexeme)
    return literals, len(text)


def _is_secret(column: str, value: str, depth: int) -> bool:
    if not value or is_harmless(value) or not is_secret_column(column):
        return False
    is_word_or_argument = column in ("token", "tokens") or depth > 1
    return not is_word_or_argument or is_generated(value)
