"""Secrets in texts: addresses, SQL dialects, code, shells, and lookalikes."""

import pytest

from strandline.core.redaction.json import has_secret, is_suspicious
from strandline.core.redaction.text import redact_text
from worlds.builders import encode

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
    ],
    ids=lambda text: repr(text[:30]),
)
def test_text_is_scanned_in_linear_time(text: str) -> None:
    """A backtracking pattern would take minutes to days."""
    redact_text(text)


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
        "s3a://AKIA:hun/hunter2@bucket/path",
        "postgres://ann:p'hunter2@db/x",
        "jdbc:sqlserver://h:1;user=sa;password={my hunter2};x=1",
        "jdbc:mysql://db/x?user=a&password=p<hunter2",
        "CREATE TABLE x WITH (format = 'ORC', anything = ARRAY['hunter2'])",
        "ALTER ROLE a PASSWORD U&'hunter2'",
        "ALTER ROLE a PASSWORD $$hunter2$$",
        "ALTER ROLE a PASSWORD $x$a $$ hunter2$x$",
        "EXEC sp_addlinkedsrvlogin @rmtsrvname = N'x', @rmtpassword = N'hunter2'",
        "SET PASSWORD FOR u = PASSWORD('hunter2')",
        "UNLOAD ('x') TO 's3://b' CREDENTIALS AS 'aws_access_key_id=x;aws_secret_access_key=hunter2'",
        'df.write.option("password","hunter2").save()',
        'spark.conf.set("fs.s3a.secret.key", "hunter2")',
        "OPTIONS\f(x 'hunter2')",
        "COPY t ENCRYPTION = (x='hunter2')",
        'headers["Authorization"] = "Bearer hunter2"',
        'conf["spark.hadoop.fs.s3a.secret.key"]="hunter2"',
        "conf['spark.hadoop.fs.s3a.secret.key' ] = f'hunter2'",
        'PASSWORD = """hunter2"""',
        'PASSWORD = """\na "quoted" hunter2"""',
        "PASSWORD = '''it's hunter2'''",
        'PASSWORD = """a "quoted" hunter2',
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "key: -----BEGIN PRIVATE KEY-----\\nhunter2-\\n-----END PRIVATE KEY-----\\n",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
    ],
)
def test_secret_is_removed_from_any_dialect_program_or_shell(text: str) -> None:
    body = encode({"query": text})
    kept = redact_text(text)

    assert "hunter2" not in kept
    assert redact_text(kept) == kept
    assert is_suspicious("sql", body)
    assert has_secret(body)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t USING iceberg OPTIONS (format 'orc', 'write.mode' = \"x\") AS SELECT count(1)",
        "hdfs://nn:8020/user/a@b/x",
        "hdfs://[::1]:8020/a@b",
        "kafka://a:9092,b:9092",
        "abfss://data@lake.dfs.core.windows.net/a@b",
        "copied from hdfs://nn:8020, said ann@bank",
        "s3://bucket/{a b}/x",
        "MERGE INTO t USING s ON t.id=s.id WHEN MATCHED THEN UPDATE SET token = s.token, name = s.name",
        "UPDATE t SET auth_code = 5, x = 'a' WHERE id = 3",
        "WITH (SELECT max(x) AS m FROM t WHERE name='a') SELECT 1",
        "s3://arn:aws:s3:eu-west-1:1:accesspoint/ap/user@x.com/t",
        "see s3://lake/R&D/t",
        "SELECT * FROM a JOIN b ON a.token_id = b.token_id AND a.author_id=b.author_id WHERE x = 'y'",
        "Unexpected token '<', \"<!DOCTYPE\" is not valid",
        "event.properties('plan')",
        "model(max_tokens=512, tokenizer='bert', prompt_tokens = 5, token_count='5')",
        "s3://b/part-?.csv",
        "hdfs://nn:8020/x/part-?.json",
        "def connect(password: str, token: Optional[str] = None): ...",
        'df.select("password","email").withColumnRenamed("token","t")',
        "InvalidTokenException: The 'x'",
        "docker run -u 1000:1000 curl",
        'df[["password","email"]].drop_duplicates(subset=["token","id"])',
        "SELECT * FROM t WHERE kind IN ('ACCESS_TOKEN','REFRESH_TOKEN')",
        'df.select(["password", "email"]).agg([("token", "count")])',
        'required: ["password"], x = "a"',
        'df["amount"] = "x"; df["monkey"] = "y"; config["partition_key"] = "z"',
        'primary_key = "id"; monkey=5; tokens: 5',
        'def connect(password: str, tokens: int = 5, token: Optional[str] = None, x: str = "a"): ...',
        'PARTITION_KEY = """x""" + "y"',
        '["--max-tokens","5","--use-token","--verbose"]',
        "- name: amount\n  type: x\n",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "must start with '-----BEGIN PRIVATE KEY-----', said x",
        "usage: login <user> <password> [<token>]",
        "<name>fs.s3a.endpoint</name><value>x</value><partition_key>x</partition_key>",
        "struct<password:string> and map<string,token>",
        "SELECT 1 FROM a JOIN b ON\na.token=b.id",
        "monkey.tail=x",
        '"option": "--password", "fields": ["x"], ',
    ],
)
def test_text_that_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("scheme", ["s3", "gs", "file", "abfss"])
def test_file_url_parameters_are_removed_but_glob_patterns_stay(scheme: str) -> None:
    assert redact_text(f"{scheme}://b/part-?.csv?sig=p&sv=1") == f"{scheme}://b/part-?.csv"
    assert redact_text(f"{scheme}://b/x?X-Amz-Signature=p") == f"{scheme}://b/x"


TOKEN = ".".join(f"eyJhbGciOiJ{letter}UzI1NiIsInR5cCI6IkpXVCJ9" for letter in "Iab")


@pytest.mark.parametrize(
    "text",
    [
        "--conf spark.sql.catalog.c.token={}",
        "-Dmy.app.token={}",
        "Authorization: Bearer {}",
        "token: {}",
        "WHERE token={}",
        "--conf spark.hadoop.fs.x.access.token={}",
        "--conf spark.sql.catalog.c.password=correct.horse",
        "password: correct.horse",
    ],
)
def test_secret_with_dots_is_not_taken_for_a_column(text: str) -> None:
    kept = redact_text(text.format(TOKEN))

    assert (TOKEN in kept, "horse" in kept) == (False, False)
