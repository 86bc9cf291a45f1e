"""Secrets are found wherever they stand, in one pass over any text; and what is none stays byte for byte."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collector.builders import Json, dataset, encode, event, job_event
from strandline.core.events import decode, unread
from strandline.core.redaction import has_secret, is_suspicious, redact_bytes, redact_json, redact_text

WORDS = [
    *(b"jdbc:", b"passw", b"pwd", b"secret", b"token", b"credential", b"key", b"auth", b"signature", b"jaas", b"sas"),
    *(b"identified", b"options", b"properties", b"environment", b"with(", b"with (", b"with\\n\\t (", b"\\/", b"\\u00"),
    *(b"cookie", b"curl", b"passphrase", b"passcode", b"pass_", b"encryption = (", b"with\\f("),
]
ADDRESS = re.compile(rb"://[^\"/\s]*@|://[^\"\s]*[?;]|://[^\"\s]*#[^/]|://[^\"/\s]*:\d*[^\"/\s\d][^\"\s]*@")
PASS = re.compile(rb"pass[^a-z]")
LISTED = re.compile(rb"(?:with|encryption)(?:\s|\\[nrtf])*=?(?:\s|\\[nrtf])*\(")
SPACES = (b" ", b"\t", b"\n", b"\r", b"\f", b"\v", b"\x1c", b"\x85", b"\xc2\xa0", b"\xe2\x80\xa8")

cased = st.builds(
    lambda word, upper: bytes(
        byte ^ 0x20 * (up and chr(byte).isalpha()) for byte, up in zip(word, upper, strict=False)
    ),
    st.sampled_from(WORDS),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
cut = st.builds(lambda word, length: word[:length], cased, st.integers(1, 11))
pieces = st.one_of(
    *(cased, cut, st.binary(max_size=20), st.text(max_size=10).map(str.encode), st.sampled_from(SPACES)),
    st.sampled_from(
        (b"://", b"@", b"?", b";", b"#", b"#/", b"/", b'"', b"\\", b"\\u0070", b"\xc5\xbf", b"\xe2\x84\xaa")
    ),
)
bodies = st.lists(pieces, max_size=30).map(b"".join)


@given(bodies)
@example(b'{"a": "' + b"x" * 20_000 + b'PassWord"}')
@example(b'{"a": "\\u0070assword"}')
@example(b'{"a": "://x#')
@example("{'a': '\u017fecret to\u212aen'}".encode())
def test_a_facet_is_suspicious_exactly_if_a_word_or_an_address_with_more_than_a_place_is_in_it(body: bytes) -> None:
    address = ADDRESS.search(body) is not None
    word = any(word in body.lower() for word in WORDS) or PASS.search(body.lower()) or LISTED.search(body.lower())

    assert is_suspicious("custom", body) is (address or bool(word))
    assert is_suspicious("spark_properties", body)


def test_names_of_tables_and_columns_are_not_looked_at_closer() -> None:
    body = (
        b'{"_schemaURL": "https://o.io/1-0-1/S.json#/$defs/S", "fields": [{"name": "amount", "type": "decimal(18,2)"}]}'
    )

    assert not is_suspicious("schema", body)


def test_a_word_in_any_case_or_escaped_is_a_reason_to_take_the_secret_out() -> None:
    plain, escaped = b'{"PassWord": "p"}', b'{"\\u0070assword": "p"}'

    assert is_suspicious("custom", plain)
    assert is_suspicious("custom", escaped)
    assert redact_json("custom", plain) == b'{"PassWord": "[redacted]"}'
    assert redact_json("custom", escaped) == b'{"\\u0070assword": "[redacted]"}'


@pytest.mark.parametrize(
    "text",
    [
        "COPY INTO t FROM 's3://b/p' CREDENTIALS=(AWS_KEY_ID='hunter2' AWS_SECRET_KEY='hunter2' AWS_TOKEN='hunter2')",
        "CREATE STAGE s ENCRYPTION = (TYPE='AWS_CSE' MASTER_KEY='hunter2')",
        "COPY t FROM 's3://b' ACCESS_KEY_ID 'hunter2' SECRET_ACCESS_KEY 'hunter2' SESSION_TOKEN 'hunter2'",
        "CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:x', 'password' => 'hunter2')",
        "CREATE TABLE t USING jdbc OPTIONS (dbtable (SELECT f('x') FROM y), code 'hunter2')",
        "CREATE TABLE t USING snowflake OPTIONS (a array('hunter2'), code 'hunter2')",
        "CREATE TABLE t WITH\n  ('code' = 'hunter2",
        "SET spark.hadoop.fs.s3a.secret.key=hunter2",
        "SET spark.databricks.auth = hunter2; SELECT 1",
        "spark-submit --conf spark.hadoop.fs.s3a.secret.key=hunter2 job.py",
        "SELECT * FROM dblink('dbname=x user=y password=hunter2', 'SELECT 1')",
        "ALTER USER a IDENTIFIED BY hunter2",
        "ALTER USER a IDENTIFIED WITH sha256 BY 'hunter2'",
        "CREATE USER a IDENTIFIED BY VALUES 'hunter2'",
        "s3a://AKIA:hun/hunter2@bucket/path",
        "postgres://ann:p'hunter2@db/x",
        "jdbc:sqlserver://h:1;user=sa;password={my hunter2};x=1",
        "jdbc:mysql://db/x?user=a&password=p<hunter2",
    ],
)
def test_a_secret_in_a_statement_or_an_address_goes(text: str) -> None:
    kept = redact_text(text)

    assert "hunter2" not in kept
    assert redact_text(kept) == kept
    assert is_suspicious("sql", encode({"query": text}))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.token, 'x' FROM a JOIN b ON a.token=b.token WHERE key = 'password' AND n = 'y'",
        "WITH t AS (SELECT 'a' AS b) INSERT INTO c SELECT * FROM t",
        "CREATE TABLE t USING iceberg OPTIONS (format 'orc', 'write.mode' = \"x\") AS SELECT count(1)",
        "/lake/table/password=1/token=2/day=2026-11-22",
        "hdfs://nn:8020/user/a@b/x",
        "hdfs://[::1]:8020/a@b",
        "kafka://a:9092,b:9092",
        "abfss://data@lake.dfs.core.windows.net/a@b",
        "copied from hdfs://nn:8020, said ann@bank",
        "s3://bucket/{a b}/x",
    ],
)
def test_a_text_without_secrets_stays_as_it_is(text: str) -> None:
    assert redact_text(text) == text


LONG = 200_000


@pytest.mark.parametrize(
    "text",
    [
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
    ],
    ids=lambda text: repr(text[:30]),
)
def test_any_text_is_read_once(text: str) -> None:
    """A pattern that goes back over what it has read would take from minutes to days."""
    redact_text(text)


@pytest.mark.parametrize(
    "facet",
    [
        b'{"password": "hunter2", "password": ""}',
        b'{"password": ["hunter2", ["hunter2"]], "n": 1}',
        b'{"password": 27182, "hunter": [{"pwd": 27182}]}',
        b'{"credentials": {"value": "hunter2", "deeper": {"more": ["hunter2"]}}}',
        b'{"environmentVariables": {"HOME": "hunter2"}}',
        b'{"a": {"n": 1e400, "m": ' + b"9" * 5000 + b'}, "password": "hunter2"}',
        b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b', "password": "hunter2"}',
        b'{"a": ' + b'{"secret": ' * 5000 + b'"hunter2"' + b"}" * 5000 + b"}",
    ],
)
def test_a_secret_goes_and_nothing_else_changes(facet: bytes) -> None:
    assert redact_json("custom", facet) == facet.replace(b"hunter2", b"[redacted]").replace(b"27182", b'"[redacted]"')


def test_of_properties_only_harmless_ones_stay() -> None:
    facet = b'{"properties": {"spark.master": "yarn", "spark.x": ["p"], "spark.y": "p", "spark.y": "", "z": {"a": 1}}}'

    assert redact_json("spark_properties", facet) == (
        b'{"properties": {"spark.master": "yarn", "spark.x": ["[redacted]"], "spark.y": "[redacted]", '
        b'"spark.y": "", "z": {"a": "[redacted]"}}}'
    )
    assert redact_json("", b'{"spark_properties": %s}' % facet) == b'{"spark_properties": %s}' % redact_json(
        "spark_properties", facet
    )


def test_columns_and_facets_may_be_called_like_secrets() -> None:
    origin = {"inputFields": [{"namespace": "n", "name": "t", "field": "pwd"}], "transformationType": "MASKED"}
    facets = {"columnLineage": {"fields": {"password": origin}}, "auth_statistics": {"by": "x", "columnMetrics": {}}}
    body = encode({"outputs": [{"facets": facets}]})

    assert redact_json("", body) is body


@given(
    st.one_of(
        bodies, st.builds(lambda body, end: encode({"query": body.decode("latin-1")})[:end], bodies, st.integers(5, 99))
    )
)
@example(b"CREDENTIALS=(s3a:'x'\"\"&")
@example(b"tokenSET IDENTIFIED BY \"\"''\\<")
@example(b"=\\s3a://jdbc:oracle:thin:)s3a://@")
def test_redacting_twice_is_redacting_once(body: bytes) -> None:
    once = redact_bytes(body)

    assert redact_bytes(once) == once


fragments = st.sampled_from(
    [
        *(
            "password",
            "token",
            "max_tokens",
            "api_key",
            "a.b.token",
            "dbPass",
            "Cookie",
            "IDENTIFIED BY",
            "SET",
            "curl",
        ),
        *(
            " -u ",
            "--",
            "WITH",
            "OPTIONS",
            "ENCRYPTION",
            "(",
            ")",
            "'",
            '"',
            "\\",
            '\\"',
            '\\\\\\"',
            "=",
            ":",
            ":=",
            " -> ",
        ),
        *(
            "N'",
            "$$",
            "$a$",
            " FOR ",
            " AS ",
            "[redacted]",
            "x.y",
            "1",
            ",",
            ";",
            "&",
            "[",
            "{",
            "}",
            "\n",
            "\f",
            "\xa0",
        ),
        *(
            "Bearer ",
            "jdbc:",
            "s3://b/",
            "?",
            "?a=",
            "@",
            "option(",
            "--conf ",
            "\u017fecret",
            "\u212aEY",
            "user:",
            "string",
        ),
    ]
)


@given(st.lists(fragments, max_size=14).map("".join), st.booleans())
@example("OPTIONS dbPassSET '", False)
@example("WITH\xa0(a 'b')", False)
def test_what_is_redacted_is_suspicious_and_is_redacted_once(text: str, ascii_only: bool) -> None:
    body = json.dumps({"x": text}, ensure_ascii=ascii_only).encode()
    kept = redact_json("custom", body)

    assert redact_json("custom", kept) == kept
    assert kept == body or (is_suspicious("custom", body) and has_secret(body))


FACETS: Json = {"spark_properties": {"properties": {"spark.master": "key"}}, "x": {}, "y": {"token_count": 1}, "z": 5}
READ, MADE = (
    {**dataset(name, **FACETS), "inputFacets": one, "outputFacets": other}
    for name, one, other in (("a", FACETS, {}), ("public_keys", {}, FACETS))
)
DELTA_LOG = dataset("/t/_delta_log/1.json", "file", own={"x": {"password": "p"}})
WHOLE = [
    event(facets=FACETS, job_facets=FACETS, inputs=[READ], outputs=[MADE]),
    job_event(job_facets=FACETS, inputs=None, outputs=[MADE]),
    {**event(), "run": {"runId": "1", "facets": None}, "inputs": None, "job": {"namespace": "n", "name": "j"}},
]


@pytest.mark.parametrize("one", WHOLE)
@pytest.mark.parametrize("sort_keys", [False, True])
def test_what_is_looked_at_facet_by_facet_is_not_looked_at_once_more(one: Json, sort_keys: bool) -> None:
    body = json.dumps(one, sort_keys=sort_keys).encode()

    assert not has_secret(unread(decode(body), body))


def test_many_datasets_before_their_job_are_gone_over_once() -> None:
    inputs = [dataset(f"t{number}", x={"number": number}) for number in range(LONG)]
    body = json.dumps(event(inputs=inputs, job_facets={"y": {}}), sort_keys=True).encode()

    assert unread(decode(body), body) == body


@pytest.mark.parametrize(
    "part",
    [
        {"producer": "https://ann:p@ci/x"},
        {"extra": {"password": "p"}},
        {"extra": {"spark_properties": {"properties": {"spark.x": "p"}}}},
        {"extra": {"environmentVariables": ["p"]}},
        {"extra": "CREATE TABLE t\nWITH (code = 'p')"},
        {"dataset": dataset("t", x={"password": "p"})},
        {"inputs": [DELTA_LOG]},
        {"outputs": [{"namespace": "n", "name": "t", "inputFacets": {"x": {"password": "p"}}}]},
    ],
)
def test_a_secret_outside_of_the_facets_that_are_read_is_found(part: Json) -> None:
    body = encode({**event(inputs=[dataset("a")]), **part})

    assert has_secret(unread(decode(body), body))


@pytest.mark.parametrize(
    "text",
    [
        "MERGE INTO t USING s ON t.id=s.id WHEN MATCHED THEN UPDATE SET token = s.token, name = s.name",
        "UPDATE t SET auth_code = 5, x = 'a' WHERE id = 3",
        "CREATE TABLE x WITH (partitioned_by = ARRAY['dt','bank'], format='ORC', bucketed_by = ARRAY['a'])",
        "SELECT 1 FROM a JOIN b ON bank.accounts.token=bank.cards.token",
        "WITH (SELECT max(x) AS m FROM t WHERE name='a') SELECT 1",
        "s3://arn:aws:s3:eu-west-1:1:accesspoint/ap/user@x.com/t",
        "see s3://lake/R&D/t",
    ],
)
def test_ordinary_statements_and_places_stay_as_they_are(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "SET spark.hadoop.fs.s3a.secret.key=hunter2",
        "spark-submit --conf spark.hadoop.fs.s3a.secret.key=hunter2 job.py",
        "java -Djavax.net.ssl.keyStorePassword=hunter2",
        "CREATE TABLE x WITH (format = 'ORC', anything = ARRAY['hunter2'])",
        "s3a://KEY:hunter2/b@bucket",
        "http://x/y?a=1&password=hunter2",
    ],
)
def test_secrets_without_quotes_or_in_lists_go(text: str) -> None:
    assert "hunter2" not in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE LOGIN u WITH PASSWORD = N'hunter2'",
        "ALTER ROLE a PASSWORD E'hunter2'",
        "ALTER ROLE a PASSWORD U&'hunter2'",
        "ALTER ROLE a PASSWORD $$hunter2$$",
        "ALTER ROLE a PASSWORD $x$a $$ hunter2$x$",
        "password := 'hunter2'",
        "password == 'hunter2'",
        "EXEC sp_addlinkedsrvlogin @rmtsrvname = N'x', @rmtpassword = N'hunter2'",
        "DECLARE @id INT, @password NVARCHAR(50) = N'hunter2'",
        "SET PASSWORD FOR 'u'@'h' = 'hunter2'",
        "SET PASSWORD FOR u = PASSWORD('hunter2')",
        "UNLOAD ('x') TO 's3://b' CREDENTIALS AS 'aws_access_key_id=x;aws_secret_access_key=hunter2'",
        'df.write.option("password","hunter2").save()',
        'spark.conf.set("fs.s3a.secret.key", "hunter2")',
        'Map("password" -> "hunter2")',
        "mysqldump --password hunter2 db",
        "mysqldump --password=hunter2 db",
        "job --api-key hunter2",
        "export AWS_SECRET_ACCESS_KEY=hunter2",
        "DB_PASS=hunter2 ./run",
        "curl -u user:hunter2 https://x",
        "curl --user 'user:hunter2' https://x",
        "curl -H 'Authorization: Bearer hunter2' https://x",
        "curl -H 'Cookie: a=1; session=hunter2' https://x",
        "AccountName=a;AccountKey=hunter2;EndpointSuffix=x",
        "grant_type=x&client_secret=hunter2&scope=y",
        "api_key=hunter2",
        "user: ann\npassword: hunter2\n",
        "Map(user -> ann, password -> hunter2)",
        "Map(fs.s3a.secret.key -> hunter2)",
        "JdbcOptions[client_secret=hunter2, url=x]",
        "OPTIONS\f(x 'hunter2')",
        "COPY t ENCRYPTION = (x='hunter2')",
    ],
)
def test_a_secret_goes_in_whatever_a_dialect_a_program_or_a_shell_writes(text: str) -> None:
    body = encode({"query": text})
    kept = redact_text(text)

    assert "hunter2" not in kept
    assert redact_text(kept) == kept
    assert is_suspicious("sql", body)
    assert has_secret(body)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM a JOIN b ON a.token_id = b.token_id AND a.author_id=b.author_id WHERE x = 'y'",
        "SELECT * FROM a JOIN b ON (token_id=b.token_id)",
        "Unexpected token '<', \"<!DOCTYPE\" is not valid",
        "Unexpected token: x",
        "Syntax error near token 'FROM'",
        'SELECT t.token "Token" FROM t',
        "event.properties('plan')",
        "model(max_tokens=512, tokenizer='bert', prompt_tokens = 5, token_count='5')",
        "s3://b/part-?.csv",
        "hdfs://nn:8020/x/part-?.json",
        "struct<password:string,token:bigint>",
        "root\n |-- password: string (nullable = true)\n |-- token: integer",
        "def connect(password: str, token: Optional[str] = None): ...",
        "transform(tokens, token -> upper(token))",
        "SELECT * FROM t WHERE kind IN ('token','secret')",
        'df.select("password","email").withColumnRenamed("token","t")',
        "connect(password=password, token=self.token)",
        "InvalidTokenException: The 'x'",
        "Total tokens: 5",
        "ALTER TABLE t DROP PARTITION (token=5)",
        "docker run -u 1000:1000 curl",
        "Did not pass 'x'",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("scheme", ["s3", "gs", "file", "abfss"])
def test_the_parameters_of_a_file_go_and_the_question_mark_of_a_pattern_stays(scheme: str) -> None:
    assert redact_text(f"{scheme}://b/part-?.csv?sig=p&sv=1") == f"{scheme}://b/part-?.csv"
    assert redact_text(f"{scheme}://b/x?X-Amz-Signature=p") == f"{scheme}://b/x"


@pytest.mark.parametrize(
    "facet",
    [
        b'{"Authorization": "hunter2"}',
        b'{"passphrase": "hunter2", "db_pass": "hunter2", "dbPass": "hunter2", "Cookie": "hunter2", "ssh_key": "hunter2"}',
        b'{"parameters": [{"key": "password", "name": "x", "value": "hunter2"}, {"key": "n", "value": "x"}]}',
        b'{"value": "hunter2", "name": "DB_PASSWORD"}',
        b'{"value": ["hunter2", {"n": 27182, "value": "hunter2"}], "key": "api_key", "other": "x"}',
        b'[{"value": {"value": "hunter2"}, "key": "token"}, {"value": "x", "key": "y"}]',
        b'{"environmentVariables": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "HOME", "value": "hunter2"}]}',
        b'{"environmentVariables": {"name": "hunter2"}}',
        b'{"rowCount": 1, "password": "hunter2", "note": "OPTIONS(password \'hunter2\')"}',
    ],
)
@pytest.mark.parametrize("key", ["custom", "outputStatistics"])
def test_a_secret_goes_by_the_name_beside_it(facet: bytes, key: str) -> None:
    kept = redact_json(key, facet)

    assert kept == facet.replace(b"hunter2", b"[redacted]").replace(b"27182", b'"[redacted]"')
    assert redact_json(key, kept) == kept
    assert is_suspicious(key, facet)


@pytest.mark.parametrize(
    "facet",
    [
        {"fields": [{"name": "password", "type": "string", "description": "x"}]},
        {"tags": [{"key": "password", "value": "masked", "source": "x"}]},
        {"prompt_tokens": 5, "maxTokens": 6, "token_count": 7, "tokenizer": "bert", "total_tokens": "8"},
        {"author": "Ann", "authority": "x", "authenticationType": "kerberos"},
        {"parameters": [{"key": "day", "value": "2026-11-22"}], "passenger": "x", "passed": "y"},
    ],
)
def test_names_that_tell_nothing_of_a_secret_keep_what_they_name(facet: Json) -> None:
    body = encode(facet)

    assert redact_json("tags" if "tags" in facet else "custom", body) is body


def test_json_in_a_text_stays_json_at_any_depth() -> None:
    inner = json.dumps({"password": "hunter2", "pin": 1, "secret": 27182, "x": 'a "b"'})
    middle = json.dumps({"deeper": inner, "token": 'hun"ter2', "y": [1]})
    kept = json.loads(redact_json("custom", json.dumps({"config": middle}).encode()))["config"]
    outer, innermost = json.loads(kept), json.loads(json.loads(kept)["deeper"])

    assert outer == {"deeper": outer["deeper"], "token": "[redacted]", "y": [1]}
    assert innermost == {"password": "[redacted]", "pin": 1, "secret": "[redacted]", "x": 'a "b"'}
