"""The rules of redaction, tested form by form, on canaries and on ordinary SQL."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from types import FrameType

import pytest
import sqlglot
from sqlglot.errors import SqlglotError

from strandline.core.redaction.json import has_secret, is_suspicious
from strandline.core.redaction.rules.addresses import hide_in_addresses
from strandline.core.redaction.rules.forms import Form
from strandline.core.redaction.rules.hide import ALL_FORMS, hide, hide_mentioned
from strandline.core.redaction.rules.limits import ADDRESSES, ITEMS, LISTS, MENTIONS
from strandline.core.redaction.rules.tokens import TOKENS, hide_tokens
from strandline.core.redaction.text import redact_text
from strandline_spark.openlineage.redaction import clean_text
from worlds.builders import encode
from worlds.canaries import Canary, canaries, leaks
from worlds.ordinary_sql import ordinary

GONE = "[redacted]"


@pytest.mark.parametrize(
    ("hides", "keeps"), [pytest.param(form.hides, form.keeps, id=form.name) for form in ALL_FORMS]
)
def test_each_form_hides_and_keeps_its_examples(
    hides: tuple[str, ...], keeps: tuple[str, ...]
) -> None:
    hidden = [hide_mentioned(text, GONE) for text in hides]

    assert [text for text in hidden if "hunter2" in text or "271828" in text] == []
    assert [hide(text, GONE) for text in hidden] == hidden
    assert [hide(text, GONE) for text in keeps] == list(keeps)


def test_every_example_is_a_suspicious_facet_with_a_secret() -> None:
    """Only suspicious facets are looked through."""
    bodies = [encode({"query": text}) for form in ALL_FORMS for text in form.hides]

    assert [body for body in bodies if not is_suspicious("sql", body)] == []
    assert [body for body in bodies if not has_secret(body)] == []


def test_every_form_is_needed_by_one_of_its_examples() -> None:
    """Without the form, one of its own examples would not be hidden."""
    useless = []
    for form in ALL_FORMS:
        others = tuple(one for one in ALL_FORMS if one is not form)
        if not any(is_left(text, others) for text in form.hides):
            useless.append(form.name)

    assert useless == []


def is_left(text: str, forms: tuple[Form, ...]) -> bool:
    shown = hide_mentioned(text, GONE, forms)
    return "hunter2" in shown or "271828" in shown


@pytest.mark.parametrize(
    ("hides", "keeps"), [pytest.param(one.hides, one.keeps, id=one.name) for one in TOKENS]
)
def test_each_token_kind_is_recognized_by_its_form(
    hides: tuple[str, ...], keeps: tuple[str, ...]
) -> None:
    assert [hide_tokens(f"x {token}, y", "*") for token in hides] == ["x *, y"] * len(hides)
    assert [hide_tokens(f"x {text}, y", "*") for text in keeps] == [
        f"x {text}, y" for text in keeps
    ]


CLEAN: dict[str, Callable[[str], str]] = {"collector": redact_text, "emitter": clean_text}


@pytest.mark.parametrize("clean", CLEAN.values(), ids=CLEAN)
def test_no_canary_survives(clean: Callable[[str], str]) -> None:
    planted = canaries()

    assert len({canary.secret for canary in planted}) == len(planted) >= 1000
    assert [canary for canary in planted if leaks([canary], clean(canary.text))] == []


def test_no_canary_is_left_in_a_long_text() -> None:
    """In a long text with few words the rules look for the words first, and try no pattern elsewhere."""
    rest = "an ordinary line\n" * 100
    texts = [(canary, f"{rest}{canary.text}\n{rest}") for canary in canaries()]

    assert [canary for canary, text in texts if leaks([canary], redact_text(text))] == []


@pytest.mark.parametrize("clean", CLEAN.values(), ids=CLEAN)
def test_at_most_ten_of_500_ordinary_statements_change(clean: Callable[[str], str]) -> None:
    statements = ordinary()

    assert len(set(statements)) == 500
    assert len([text for text in statements if clean(text) != text]) <= 10


def test_sql_parses_without_its_secrets_and_keeps_its_columns() -> None:
    statements = [*ordinary(), *(canary.text for canary in canaries() if is_sql(canary))]
    parsed = {text: columns(text) for text in statements}
    understood = {text: names for text, names in parsed.items() if names is not None}

    assert len(understood) > 500
    assert [
        (text, redact_text(text))
        for text, names in understood.items()
        if columns(redact_text(text)) != names
    ] == []


def is_sql(canary: Canary) -> bool:
    return re.match(r"SELECT|CREATE TABLE|ALTER TABLE", canary.text) is not None


def columns(statement: str) -> list[str] | None:
    """The names of columns in a statement; None where it is not understood."""
    try:
        tree = sqlglot.parse_one(statement, read="spark", error_level=sqlglot.ErrorLevel.RAISE)
    except SqlglotError:
        return None
    return [column.name for column in tree.find_all(sqlglot.exp.Column)]


UNITS = (
    "password ",
    "password='x' ",
    "-D a.b.secret=x ",
    '\\"password\\": \\"x\\",',
    " OPTIONS(a 'b')",
    "['password', 'x']",
    "https://hooks.slack.com/a?b=c ",
    "jdbc:a:b;c ",
    "curl -u x:y ",
    "hmac('x')",
    "AKIAAAAAAAAAAAAAAAAA ",
    "?a=b&sig=x ",
    "SELECT a, b FROM t WHERE x = 'abc'\n",
    "eyJaaaaaaa-",
    "sk-",
    "://",
    "Bearer ",
    "<password>x",
    "IDENTIFIED BY x ",
)


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_work_is_linear_in_length_and_bounded(unit: str) -> None:
    """Work is counted in Python and C function calls, of which `re` makes one per match."""
    few, many, very_many = (work(unit * times) for times in (1_000, 2_000, 100_000))

    assert many <= 2.2 * few + 100
    assert very_many <= 60 * (MENTIONS + LISTS + ITEMS + ADDRESSES)


def test_plain_addresses_cost_no_extra_work() -> None:
    assert work("SELECT 'https://host:8080/path' " * 20_000) < 2_000
    assert (
        hide_in_addresses("a://h:80/b?x=y c://webhook.io/t d://u:p@h/b", GONE)
        == "a://h:80/b c://webhook.io/t d://h/b"
    )


# What took time with the square of its length, or twice as long with each word more.
SLOW = (
    ("curl -u ", "\r", 300_000, ""),
    ("WITH", " ", 300_000, "x"),
    ("PASSWORD FOR ", " ", 300_000, ""),
    ("OPTIONS('", "a_", 90, "zz' 'x')"),
    ("OPTIONS(x ", "a ARRAY[ ", 30_000, ""),
    ("jdbc:a:", "password", 40_000, ""),
    ("", ":token", 50_000, ""),
    ("", "password:x]", 30_000, ""),
    ("https://", "webhook", 40_000, "+/x#y"),
)
PROGRAM = """
import json, resource, sys
from strandline.core.redaction.rules import hide
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
for first, unit, times, last in json.load(sys.stdin):
    hide(first + unit * times + last, "*")
"""


def test_no_text_takes_superlinear_time() -> None:
    """Backtracking shows only in processor time: the texts take two seconds, the limit is 120."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(SLOW),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


def work(text: str) -> int:
    """How many calls a text takes."""
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        hide(text, GONE)
    finally:
        sys.setprofile(None)
    return calls
