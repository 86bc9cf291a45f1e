"""Secrets in texts: addresses, SQL dialects, code, shells, and lookalikes."""

import pytest

from strandline.core.redaction.json import has_secret, is_suspicious
from strandline.core.redaction.text import redact_text
from worlds.builders import encode


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
def test_secret_in_a_statement_or_address_is_removed(text: str) -> None:
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
def test_text_without_secrets_stays_unchanged(text: str) -> None:
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
        "MERGE INTO t USING s ON t.id=s.id WHEN MATCHED THEN UPDATE SET token = s.token, name = s.name",
        "UPDATE t SET auth_code = 5, x = 'a' WHERE id = 3",
        "CREATE TABLE x WITH (partitioned_by = ARRAY['dt','bank'], format='ORC', bucketed_by = ARRAY['a'])",
        "SELECT 1 FROM a JOIN b ON bank.accounts.token=bank.cards.token",
        "WITH (SELECT max(x) AS m FROM t WHERE name='a') SELECT 1",
        "s3://arn:aws:s3:eu-west-1:1:accesspoint/ap/user@x.com/t",
        "see s3://lake/R&D/t",
    ],
)
def test_ordinary_statements_and_addresses_stay_unchanged(text: str) -> None:
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
def test_unquoted_and_listed_secrets_are_removed(text: str) -> None:
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
        "database.password=hunter2",
        "database.user=u\ndatabase.password=hunter2\n",
        "{database.user=u, database.password=hunter2}",
        "s3.access-key: u\ns3.secret-key: hunter2\n",
        "secret_key: hunter2",
        "fs.azure.account.key.a.dfs.core.windows.net: hunter2",
        'os.environ["DB_PASSWORD"] = "hunter2"',
        "config['password'] = 'hunter2'",
        'headers["Authorization"] = "Bearer hunter2"',
        'conf["spark.hadoop.fs.s3a.secret.key"]="hunter2"',
        "conf['spark.hadoop.fs.s3a.secret.key' ] = f'hunter2'",
        'os.environ.get("DB_PASSWORD", "hunter2")',
        'def connect(password: str = "hunter2"): ...',
        'password: Optional[str] = "hunter2"',
        "password: str | None='hunter2'",
        'PASSWORD = """hunter2"""',
        'PASSWORD = """\na "quoted" hunter2"""',
        "PASSWORD = '''it's hunter2'''",
        'PASSWORD = """a "quoted" hunter2',
        'run(["mysql", "--password", "hunter2"])',
        "['--password','hunter2']",
        'env = ["DB_PASSWORD","hunter2"]',
        '[["password","hunter2"],["user","u"]]',
        "[['user', 'u'], ['password', 'hunter2']]",
        'setAll([("a.b.c", "x"), ("spark.hadoop.fs.s3a.secret.key", "hunter2")])',
        "V1EnvVar(name='DB_PASSWORD', value='hunter2')",
        '{"key":"DB_PASSWORD","val":"hunter2"}',
        '<add key="password" value="hunter2"/>',
        "- name: DB_PASSWORD\n  value: hunter2\n",
        "- name: 'DB_PASSWORD'\n  value: 'hunter2'\n",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "key: -----BEGIN PRIVATE KEY-----\\nhunter2-\\n-----END PRIVATE KEY-----\\n",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
        "<password>hunter2</password>",
        '<a:password type="x">\nhunter2\n</a:password>',
        "<password><![CDATA[a]b hunter2]]></password>",
        "<name>fs.s3a.secret.key</name>\n  <value>hunter2</value>",
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
        'df[["password","email"]].drop_duplicates(subset=["token","id"])',
        "SELECT * FROM t WHERE kind IN ('ACCESS_TOKEN','REFRESH_TOKEN')",
        'df.select(["password", "email"]).agg([("token", "count")])',
        'required: ["password"], x = "a"',
        'df["amount"] = "x"; df["monkey"] = "y"; config["partition_key"] = "z"',
        'primary_key = "id"; monkey=5; tokens: 5',
        "password_changed_at: 2026-11-22",
        'def connect(password: str, tokens: int = 5, token: Optional[str] = None, x: str = "a"): ...',
        'PARTITION_KEY = """x""" + "y"',
        '["--max-tokens","5","--use-token","--verbose"]',
        "env(name='HOME', value='/root')",
        "- name: HOME\n  value: /root\n",
        "- name: amount\n  type: x\n",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "must start with '-----BEGIN PRIVATE KEY-----', said x",
        "usage: login <user> <password> [<token>]",
        "<name>fs.s3a.endpoint</name><value>x</value><partition_key>x</partition_key>",
        "struct<password:string> and map<string,token>",
        "SELECT 1 FROM a JOIN b ON\na.token=b.id",
        "MERGE INTO t USING s ON t.id=s.id WHEN MATCHED THEN UPDATE SET t.n=s.n, t.token=s.value",
        "a.token=b.token",
        "columns: a.password: string, b.token: bigint",
        "monkey.tail=x",
        '"option": "--password", "fields": ["x"], ',
        "Caused by: org.apache.hadoop.security.token.InvalidToken: expired",
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
