"""The inputs of a column.

Terms, each an expression over columns of tables, with how each column takes part.

A column that comes through a UNION has one term for each branch, in the branches' order. Inside a
text a column of a table is a mark, so that its name can be qualified when it is known with which
others it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

LONGEST = (
    4096  # characters of a transform; deeper expressions show the name of an inner column instead
)
MOST_BRANCHES = 1000  # of a UNION, whose expressions are kept apart

# How a column takes part. The direct ones in the order in which one covers the other.
IDENTITY, TRANSFORMATION, AGGREGATION = "IDENTITY", "TRANSFORMATION", "AGGREGATION"
CONDITIONAL, WINDOW, FILTER, JOIN, GROUP_BY, SORT = (
    "CONDITIONAL",
    "WINDOW",
    "FILTER",
    "JOIN",
    "GROUP_BY",
    "SORT",
)
# by what name a term keeps what PIVOT picks from it: no field of a struct is called so
PIVOTED = "\0pivoted"
DIRECT = {IDENTITY, TRANSFORMATION, AGGREGATION}


@dataclass(frozen=True, slots=True)
class Ref:
    """A column of a table.

    The dataset's namespace and name, the column, and the table as Spark names it. `path`: the field
    of the column, and of fields inside it, that alone is read.
    """

    dataset: tuple[str, str]
    column: str
    table: str
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The column, or `column.field`."""
        return ".".join((self.column, *self.path))

    @property
    def text(self) -> str:
        """The same as SQL writes it."""
        return ".".join(map(quoted, (self.column, *self.path)))


Kinds = Mapping[tuple[Ref, str], bool]  # (column, subtype) -> masked


@dataclass(frozen=True, slots=True)
class Term:
    """One expression.

    `fields`: of a struct that the statement itself builds, what each field is.
    """

    text: str
    refs: tuple[Ref, ...] = ()  # what the marks in the text stand for
    kinds: Kinds = field(default_factory=dict)
    fields: Mapping[str, Term] | None = None

    @property
    def is_identity(self) -> bool:
        """True if it is a column as it is."""
        return (
            len(self.kinds) == 1 and next(iter(self.kinds))[1] == IDENTITY and self.text == _mark(0)
        )


Value = tuple[Term, ...]


def _mark(index: int) -> str:
    return f"\x01{index}\x02"


_MARKS = re.compile("\x01(\\d+)\x02")


def column(ref: Ref) -> Value:
    """A column of a table as it is."""
    return (Term(_mark(0), (ref,), {(ref, IDENTITY): False}),)


def inside(ref: Ref, field: str) -> Term:
    """A field of a column, or of a field, as it is."""
    return column(replace(ref, path=(*ref.path, field)))[0]


def constant(text: str) -> Value:
    """Something that comes from no column."""
    return (Term(text),)


def built(
    pieces: Sequence[str | Term], kinds: Kinds, fields: Mapping[str, Term] | None = None
) -> Term:
    """A term from text and the texts of other terms, whose marks are numbered anew."""
    refs: dict[Ref, int] = {}
    text = "".join(
        piece if isinstance(piece, str) else _renumbered(piece, refs) for piece in pieces
    )
    return Term(text, tuple(refs), kinds, fields)


def commas(terms: Sequence[Term]) -> list[str | Term]:
    """The pieces of several terms with commas in between."""
    return [
        piece for index, term in enumerate(terms) for piece in ((", ", term) if index else (term,))
    ]


def listed(terms: Sequence[Term]) -> Term:
    """Several terms, with commas in between, as one."""
    return built(commas(terms), demoted(terms, lambda kind: kind))


def _renumbered(term: Term, refs: dict[Ref, int]) -> str:
    numbers = [refs.setdefault(ref, len(refs)) for ref in term.refs]
    return (
        _MARKS.sub(lambda mark: _mark(numbers[int(mark[1])]), term.text) if numbers else term.text
    )


def shortened(value: Value, name: str) -> Value:
    """The same value, with its name in place of any text that has grown too long."""
    if all(len(term.text) <= LONGEST for term in value):
        return value
    return tuple(
        term if len(term.text) <= LONGEST else Term(name, (), term.kinds) for term in value
    )


def aligned(children: Sequence[Value]) -> Iterable[list[Term]]:
    """The children's terms side by side.

    Branch by branch where they come from one UNION, else each way as one.
    """
    most = max((len(child) for child in children), default=1)
    flat = [child if len(child) in (1, most) else (merged(child),) for child in children]
    for branch in range(most):
        yield [child[branch if len(child) > 1 else 0] for child in flat]


def merged(value: Value) -> Term:
    """Several terms as one: the text of the first, the kinds of all."""
    return Term(value[0].text, value[0].refs, demoted(value, lambda kind: kind))


def alternatives(branches: Sequence[Value]) -> Value:
    """The values of the branches of a UNION in one column.

    Equal ones once, but all are kept if others rely on order.
    """
    terms = tuple(term for value in branches for term in value)
    if len(terms) <= MOST_BRANCHES:
        return terms
    return (*terms[: MOST_BRANCHES - 1], merged(terms[MOST_BRANCHES - 1 :]))


def demoted(
    terms: Iterable[Term], subtype: Callable[[str], str], masked: bool = False
) -> dict[tuple[Ref, str], bool]:
    """The kinds of terms inside an expression, each subtype changed by what is done there.

    A column is masked if it is wherever it takes part: COALESCE(MD5(name), name) shows the name.
    """
    terms_by_ref: dict[tuple[Ref, str], bool] = {}
    for term in terms:
        for (ref, kind), mask in term.kinds.items():
            key = (ref, subtype(kind) if kind in DIRECT else kind)
            terms_by_ref[key] = terms_by_ref.get(key, True) and (
                mask or (masked and kind in DIRECT)
            )
    return terms_by_ref


def transforming(kind: str) -> str:
    """Return the dependency of a function's result on a direct argument."""
    return TRANSFORMATION if kind == IDENTITY else kind


def written(term: Term) -> str:
    """Return the term's text with its columns' names.

    They are qualified by table where columns of several tables meet.
    """
    names = _qualified(term.refs) if len({ref.dataset for ref in term.refs}) > 1 else {}
    return _MARKS.sub(
        lambda mark: names.get(int(mark[1])) or term.refs[int(mark[1])].text, term.text
    )


def _qualified(refs: Sequence[Ref]) -> dict[int, str]:
    tables = {ref.dataset: ref.table for ref in refs}
    short = [_last(table) for table in tables.values()]
    labels = {dataset: _label(table, short) for dataset, table in tables.items()}
    return {index: f"{labels[ref.dataset]}.{ref.text}" for index, ref in enumerate(refs)}


def _label(table: str, short: Sequence[str]) -> str:
    """The last part of a table's name, unless another table of the expression has the same."""
    last = _last(table)
    return last if short.count(last) == 1 else table


def _last(table: str) -> str:
    return table.rstrip("/").rpartition("/")[2] if "/" in table else table.rpartition(".")[2]


def quoted(name: str) -> str:
    """A column's name as SQL writes it.

    >>> quoted("birthday"), quoted("two words"), quoted("a.b")
    ('birthday', '`two words`', '`a.b`')
    """
    return name if re.fullmatch(r"\w+", name) else "`" + name.replace("`", "``") + "`"


def in_quotes(text: str) -> str:
    r"""A text as SQL writes it, so that where it ends can be seen.

    >>> print(in_quotes("C:\\"), in_quotes("it's"))
    'C:\\' 'it\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
