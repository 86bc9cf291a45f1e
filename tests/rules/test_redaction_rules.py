"""The rules of redaction: examples form by form, canaries, ordinary SQL and hostile texts."""

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
import sqlglot
from sqlglot.errors import SqlglotError

from strandline.core.redaction.json import has_secret, is_suspicious
from strandline.core.redaction.rules import names
from strandline.core.redaction.rules.named import MENTIONS
from strandline.core.redaction.rules.parentheses import OPTIONS
from strandline.core.redaction.rules.tokens import hide_tokens
from strandline.core.redaction.text import redact_text
from strandline_spark.openlineage.redaction import clean_text
from worlds.builders import encode
from worlds.canaries import Canary, canaries, leaks
from worlds.ordinary_sql import ordinary
from worlds.printed_texts import KEPT, PRINTED
from worlds.redaction_examples import FORMS, MESSAGES, QUERIES, SECRETS, TOKENS


@pytest.mark.parametrize(("hides", "keeps"), FORMS.values(), ids=FORMS)
def test_each_form_hides_and_keeps_its_examples(
    hides: tuple[str, ...], keeps: tuple[str, ...]
) -> None:
    hidden = [redact_text(text) for text in hides]
    bodies = [encode({"query": text}) for text in hides]

    assert [text for text in hidden if any(secret in text for secret in SECRETS)] == []
    assert [redact_text(text) for text in hidden] == hidden
    assert [redact_text(text) for text in keeps] == list(keeps)
    assert [body for body in bodies if not is_suspicious("sql", body)] == []
    assert [body for body in bodies if not has_secret(body)] == []


def test_a_dictionary_of_cookies_loses_its_values_alone() -> None:
    text = 'cookies={{"jwt": "{}", "lang": lang, "session": "{}"}}; x = {{"a": "b"}}'
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlMTIzNDU2"

    assert redact_text(text.format(jwt, "x y")) == text.format("[redacted]", "[redacted]")


def test_a_command_that_lost_its_secret_leaves_the_literals_behind_it() -> None:
    text = "SELECT 1; sshpass -p {} x; SELECT 'docker login -u a', ' -p x y'"

    assert redact_text(text.format("hunter2hunter2")) == text.format("[redacted]")


@pytest.mark.parametrize(("hides", "keeps"), TOKENS.values(), ids=TOKENS)
def test_each_token_is_recognized_by_its_form(
    hides: tuple[str, ...], keeps: tuple[str, ...]
) -> None:
    assert [hide_tokens(f"x {token}, y", "*") for token in hides] == ["x *, y"] * len(hides)
    assert [hide_tokens(f"x {text}, y", "*") for text in keeps] == [
        f"x {text}, y" for text in keeps
    ]


@pytest.mark.parametrize("secret", ["Zq9f3c1b7e5d2a8046aa", "wJalrXUtnFEMI7K7MDENG2bPxRfi"])
def test_no_message_keeps_its_secret(secret: str) -> None:
    texts = [text.replace("$SECRET", secret) for text in (*MESSAGES, *PRINTED)]

    assert [text for text in texts if secret in redact_text(text)] == []
    assert [text for text in texts if not is_suspicious("custom", encode({"x": text}))] == []


@pytest.mark.parametrize("secret", ["wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "Tr0ub4dor%3x"])
def test_secrets_with_signs_are_hidden_too(secret: str) -> None:
    texts = [
        f"sqlplus -s scott/{secret}@ORCL",
        f"dsn=ann:{secret}@tcp(db:3306)/bank",
        f"A temporary password is generated for root@localhost: {secret}",
        f"&{{Host:db Password:{secret} Port:5432}}",
        f"USER ann PASS {secret}",
        f"token => {secret} for ann",
    ]

    assert [text for text in texts if secret in redact_text(text)] == []


def test_texts_without_a_secret_are_unchanged() -> None:
    statements = [*QUERIES, *(f"Error in query: {query}" for query in QUERIES), *ordinary(), *KEPT]

    assert len(set(statements)) >= 700
    assert [(text, redact_text(text)) for text in statements if redact_text(text) != text] == []


def test_links_lose_only_secret_parameters() -> None:
    link = "https://host:8080/log?dag_run_id=manual__2026-11-20&token={}&task_id=load#tab=logs"
    signed = "abfss://c@a/f?sv=2024&se={}&sig=abc&version=3"
    hidden = "abfss://c@a/f?sv=[redacted]&se=[redacted]&sig=[redacted]&version=3"

    assert redact_text(link.format("abc")) == link.format("[redacted]")
    assert (
        redact_text("https://h/#access_token=abc&x=1") == "https://h/#access_token=[redacted]&x=1"
    )
    assert redact_text("s3://b/part-?.csv") == "s3://b/part-?.csv"
    assert redact_text(signed.format("2026-11-28")) == hidden
    assert redact_text(signed.format("2026-11-29")) == hidden


CLEAN: dict[str, Callable[[str], str]] = {"collector": redact_text, "emitter": clean_text}


@pytest.mark.parametrize("clean", CLEAN.values(), ids=CLEAN)
def test_no_canary_survives(clean: Callable[[str], str]) -> None:
    planted = canaries()

    assert len({canary.secret for canary in planted}) == len(planted) >= 1000
    assert [canary for canary in planted if leaks([canary], clean(canary.text))] == []


AROUND: dict[str, Callable[[str], str]] = {
    "lines": lambda text: "an ordinary line\n" * 100 + text + "\nan ordinary line" * 100,
    "a literal": lambda text: "SELECT '" + text.replace("'", "''") + "' AS x FROM t",
    "a line comment": lambda text: f"-- {text}\nSELECT 1",
    "a comment": lambda text: f"SELECT 1 /* {text} */",
    "a statement before": lambda text: f"Error in SQL: SELECT a FROM t; {text}",
    "an apostrophe before": lambda text: f"it's {text}",
    "apostrophes around": lambda text: f"don't {text} won't",
    "a JSON text": lambda text: encode({"a": text}).decode(),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_no_canary_survives_inside_another_text(around: Callable[[str], str]) -> None:
    planted = [canary._replace(text=around(canary.text)) for canary in canaries()]

    assert [canary for canary in planted if leaks([canary], redact_text(canary.text))] == []


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
    """Return whether a canary's text is a statement that the parser knows."""
    return re.match(r"SELECT|CREATE TABLE|ALTER TABLE", canary.text) is not None


def columns(statement: str) -> list[str] | None:
    """Return the names of columns in a statement, or None if it cannot be parsed."""
    try:
        tree = sqlglot.parse_one(statement, read="spark", error_level=sqlglot.ErrorLevel.RAISE)
    except SqlglotError:
        return None
    return [column.name for column in tree.find_all(sqlglot.exp.Column)]


def test_text_with_more_finds_than_the_limit_is_hidden_as_a_whole() -> None:
    assert redact_text("password, " * (MENTIONS + 1)) == "[redacted]"
    assert redact_text("OPTIONS (" + "a 'b', " * OPTIONS + ")") == "OPTIONS ([redacted])"


LONG = 200_000
HOSTILE = [
    "CREATE TABLE t OPTIONS(" + "a." * LONG,
    "CREATE TABLE t OPTIONS(" + "a.=" * LONG,
    "SELECT password" + " " * LONG + "FROM t WHERE x = 'a'",
    "CREATE TABLE t WITH (a" + " " * LONG + ",)",
    "WITH (" + "'" * LONG,
    "WITH ('" + "\\'" * LONG,
    "OPTIONS(\\'" * LONG,
    "PASSWORD '\\" * LONG,
    "PASSWORD \\'" * LONG,
    "WITH (" * LONG + "'",
    "WITH (" + "(a" * LONG,
    "OPTIONS((\\'" * LONG,
    "OPTIONS(a b(\\'" * LONG,
    "OPTIONS(" + "a b(\\'" * LONG,
    "OPTIONS(" + "`a" * LONG,
    "SECRET" * LONG + "'",
    "a.SECRET." * LONG + "'",
    "IDENTIFIED " * LONG + "'",
    "SET a.b " * LONG + "=",
    "x://a:" * LONG + "'",
    "echo a|" * LONG,
    "echo a |" + " " * LONG,
    "curl -b a" * (LONG // 10),
    'connect(\\"' * (LONG // 5),
    "connect('a'," * (LONG // 5),
    "cookies={" * (LONG // 10),
    "access_key = '" + "a/" * LONG + "'",
    "x-sk-" * LONG,
    "CALL " + "a." * LONG,
    "CALL a(b=>" * (LONG // 10),
    "CALL a(b=>c() " * (LONG // 10),
    "CALL a(b=>" + "c()" * LONG,
    "CALL a(b=>c)" + " " * LONG + "x",
    "echo a | sudo" + " -a" * LONG,
    "echo a | sudo -a " * (LONG // 10),
    "cookies={'a':b,'cookies':cookies={" * (LONG // 20),
    "cookies={" + "'a':cookies=," * (LONG // 10),
    "SELECT " + "'curl -u', " * (LONG // 10),
    "SELECT '" + "curl -u a:b ', 'curl -u a:" * (LONG // 20),
    "x://?{" * LONG + "'=",
    "s3://a/" + "?a" * LONG,
    "password for " * LONG,
    "password a(" * LONG,
    "@password a" + " " * LONG + ":",
    'password":\\\\\\"\\' * (LONG // 5),
    "password $a" * LONG,
    "option('password'," * (LONG // 5),
    "password=" + "\\" * LONG,
    "a.b.token -> " * (LONG // 5),
    "token: Bearer" + " " * LONG,
    "curl -u x:" * (LONG // 10),
    "['--password'," * (LONG // 5),
    '["A_TOKEN",\\"x' * (LONG // 5),
    "password: a[" * (LONG // 5),
    'password="""' * (LONG // 5),
    "password='''" * (LONG // 5),
    "name='password',value=" * (LONG // 10),
    "name: password\n" * (LONG // 10),
    "<password><![CDATA[" * (LONG // 10),
    "<name>password</name>" + "\\" * LONG,
    "-----BEGIN PRIVATE KEY-----" * (LONG // 10),
    "account.key." * (LONG // 5),
    ", a.token=b.c" * (LONG // 10),
]
# Texts that once took time with the square of their length, or twice as long with each word more.
HOSTILE += [
    "curl -u " + "\r" * 300_000,
    "WITH" + " " * 300_000 + "x",
    "PASSWORD FOR " + " " * 300_000,
    "OPTIONS('" + "a_" * 90 + "zz' 'x')",
    "OPTIONS(x " + "a ARRAY[ " * 30_000,
    "jdbc:a:" + "password" * 40_000,
    ":token" * 50_000,
    "password:x]" * 30_000,
    "https://" + "webhook" * 40_000 + "+/x#y",
    "SELECT " + "'a'\"b\"" * 20_000,
    "SELECT " + "'password=''x''' " * 5_000,
    "SELECT " + "/* " * LONG,
    "WITH a AS (" * 20_000,
    "mysql " * 30_000,
    "login a/b@c " * 20_000,
    "SELECT s3('x://'," * 5_000,
    "sig=," * 40_000,
    "INSERT INTO t (password) VALUES ('" * 10_000,
    "INSERT INTO t (password) VALUES (((((" * 10_000,
    "INSERT INTO t (password, a) VALUES ('x1y2'," * 5_000,
    " SELECT a" * 30_000 + " password",
    "xapp-" * 50_000,
    "pypi-" * 50_000,
    "-dckr_pat_" * 30_000,
    "SELECT a FROM t WHERE " + "token=a, f(" * (LONG // 10),
    "UPDATE t SET " + "token=a, -- b\n" * (LONG // 10),
    "AUTH PLAIN " * (LONG // 10),
    'Digest a="' * (LONG // 10),
    "OAuth " + "a=b," * LONG,
    "OAuth " + "a" * LONG,
    "net user a " * (LONG // 10),
    "mc alias set a b c " * (LONG // 10),
    "conn a/" * (LONG // 5),
    "conn" + " " * LONG,
    "SELECT " + "'x1y2z3' AS password, " * 4_000,
    "SELECT " + "'x1y2z3'" + " " * LONG + "password",
    "password (" * (LONG // 10),
    "password a b c [" * (LONG // 10),
    "otp=" * LONG,
    "pin is " * (LONG // 5),
    "pin" + " " * LONG + "is",
    "password = " + "sha1(" * LONG,
    "one-time-" * (LONG // 5),
    "fernet(" * (LONG // 10),
    "x_credential('a'," * (LONG // 10),
    "password changed from " * (LONG // 10),
]
PROGRAM = """
import json, resource, sys
from strandline.core.redaction.rules import hide
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
for text in json.load(sys.stdin):
    hide(text, "*")
"""


@pytest.mark.slow
def test_hostile_texts_take_linear_time() -> None:
    """Backtracking shows in processor time: the texts take twenty seconds of 120."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "name",
    [
        *("pin", "otp", "totp", "mfa", "2fa", "cvv", "cvc", "psk", "jwt", "salt", "creds"),
        *("sessid", "sess_id", "sessionid", "session_id", "assertion", "code_verifier"),
        *("samlresponse", "community_string", "security code", "access_code", "pin code"),
        *("verification code", "recovery-code", "one-time code", "2fa code", "otp code"),
    ],
)
def test_every_short_word_is_found_before_names_are_read(name: str) -> None:
    assert names.has_short_word(name)
    assert names.strength_of(name)
