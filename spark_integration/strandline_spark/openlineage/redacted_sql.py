"""The text of an SQL statement as it may leave the driver.

Names and keywords stay, values and comments go.

Read as Spark's lexer reads it, so that an apostrophe in a comment or a backslash in a raw string
moves no quotation mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from strandline_spark.openlineage.redaction import _FORMAT, _LENGTH, HIDDEN, clean_text

_TOKEN = re.compile(
    r"""(?P<line>--(?:\\\n|[^\r\n])*)
    |(?P<block>/\*)
    |(?P<name>`(?:[^`]|``)*(?:`|\Z))
    |(?P<raw>(?<!\w)[rR](?P<mark>['"]).*?(?:(?P=mark)|\Z))
    |(?P<dollar>\$(?P<tag>\w*)\$.*?(?:\$(?P=tag)\$|\Z))
    |(?P<length>\bINTERVAL\s+)?(?P<quote>['"])(?P<text>(?:(?!(?P=quote))[^\\]|\\.|(?P=quote){2})*)(?:(?P=quote)|\Z)""",
    re.DOTALL | re.VERBOSE | re.IGNORECASE,
)
_BLOCK = re.compile(r"/\*|\*/")


def clean_sql(text: str) -> str:
    r"""A statement without its literals and comments.

    >>> clean_sql(
    ...     "INSERT INTO t -- don't tell\n"
    ...     "SELECT `it's`, 'ann', r'\\', date_format(at, 'yyyy') FROM s"
    ... )
    "INSERT INTO t \nSELECT `it's`, '***', '***', date_format(at, 'yyyy') FROM s"
    >>> clean_sql("CREATE TABLE t USING jdbc OPTIONS (password 1234, token 'x /* y')")
    "CREATE TABLE t USING jdbc OPTIONS (password '***', token '***')"
    """
    return clean_text("".join(_pieces(text))).strip()


def _pieces(text: str) -> Iterator[str]:
    at = 0
    while (match := _TOKEN.search(text, at)) is not None:
        yield text[at : match.start()]
        at = match.end() if not match["block"] else _end_of_comment(text, match.end())
        yield _shown(match)
    yield text[at:]


def _end_of_comment(text: str, at: int) -> int:
    """Comments in brackets nest; one that does not end goes on to the end."""
    depth = 1
    while depth and (mark := _BLOCK.search(text, at)) is not None:
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at if not depth else len(text)


def _shown(match: re.Match[str]) -> str:
    if match["line"] or match["block"]:
        return " " if match["block"] else ""
    if match["name"]:
        return match[0]
    literal, length = match["text"], match["length"] or ""
    if literal is not None and (
        _FORMAT.fullmatch(literal) or (length and _LENGTH.fullmatch(literal))
    ):
        return match[0]
    return f"{length}'{HIDDEN}'"
