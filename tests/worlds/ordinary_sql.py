"""Five hundred ordinary statements without a secret.

Spark, Flink SQL and dbt, with names that only sound like secrets.
"""

from itertools import islice, product

TABLES = ("bank.accounts", "shop.orders", "lake.raw.events", "crm.customers", "ops.sessions")
COLUMNS = (
    "token",
    "password_hash",
    "secret_level",
    "api_key",
    "pass",
    "auth",
    "author",
    "signature",
    "credential_id",
    "key",
    "token_count",
    "partition_key",
    "monkey",
    "passenger",
    "access_key_id",
    "pwd_changed_at",
    "session_token",
    "amount",
)
QUERIES = (
    "SELECT {c}, count(*) AS n FROM {t} GROUP BY {c}",
    "SELECT t.{c} AS x, 'eu' AS region FROM {t} AS t WHERE t.{c} IS NOT NULL AND t.day = '2026-11-22'",
    "SELECT a.{c} FROM {t} AS a JOIN dim.users AS b ON a.{c} = b.{c} WHERE b.kind IN ('gold', 'silver')",
    "INSERT INTO {t} ({c}, amount) SELECT {c}, amount * 1.2 FROM staging.src WHERE status = 'done'",
    (
        "MERGE INTO {t} AS t USING staging.src AS s ON t.{c} = s.{c} WHEN MATCHED THEN UPDATE SET t.amount = s.amount "
        "WHEN NOT MATCHED THEN INSERT (amount) VALUES (s.amount)"
    ),
    "CREATE TABLE {t}_copy AS SELECT {c}, upper(name) AS name FROM {t} WHERE name LIKE 'a%'",
)
BY_HAND = (
    # Spark
    "SELECT * FROM tickets WHERE pass = 'yes'",
    "SELECT * FROM tickets WHERE pass = 'adult' AND price > 10",
    "SELECT * FROM exams WHERE result = 'pass' OR pass = 'no'",
    "SELECT count(*) FROM t WHERE token IS NULL",
    "SELECT token, 'x' FROM a WHERE kind = 'password' AND n = 'y'",
    "SELECT * FROM t WHERE kind IN ('token', 'secret', 'password')",
    "SELECT CASE WHEN token = '' THEN 'no' ELSE 'yes' END AS has_token FROM t",
    "SELECT CASE WHEN secret IS NULL THEN 'public' ELSE 'private' END AS visibility FROM t",
    "SELECT password AS 'Password' FROM users",
    'SELECT t.token "Token" FROM t',
    "SELECT explode(split(tokens, ',')) AS token FROM sentences",
    "SELECT transform(tokens, token -> upper(token)) AS upper_tokens FROM sentences",
    "SELECT filter(tokens, token -> token <> 'the') AS words FROM sentences",
    "SELECT sha2(password, 256) AS digest FROM users",
    "SELECT aes_encrypt(name, key) AS hidden FROM t",
    "SELECT map('key', 'value', 'other', 'thing') AS m FROM t",
    "SELECT get_json_object(body, '$.token') AS token FROM t",
    "SELECT body:credentials.type FROM t",
    "SELECT from_json(body, 'token STRING, amount INT') AS parsed FROM t",
    "SELECT * FROM t WHERE auth_type = 'kerberos' AND token_type = 'card'",
    "SELECT * FROM t WHERE secret_name = 'production' AND password_policy = 'strict'",
    "SELECT max(password_changed_at) FROM users WHERE password_changed_at > '2026-01-01'",
    "UPDATE users SET password_status = 'expired' WHERE id = 3",
    "UPDATE users SET token = NULL WHERE expires_at < current_date()",
    "DELETE FROM sessions WHERE token_expires_at < '2026-11-22'",
    "CREATE TABLE users (id INT, password STRING, token STRING COMMENT 'of the session')",
    "ALTER TABLE users ADD COLUMN secret STRING",
    "ALTER TABLE t DROP PARTITION (token=5)",
    "CREATE TABLE t (id INT) USING iceberg TBLPROPERTIES ('format-version'='2', 'write.parquet.compression-codec'='zstd')",
    "CREATE TABLE t USING parquet OPTIONS ('compression'='snappy', 'mergeSchema'='true') AS SELECT 1 AS id",
    "CREATE TABLE t USING csv OPTIONS (header 'true', delimiter ';', nullValue '') LOCATION '/lake/t'",
    "CREATE TABLE t USING delta TBLPROPERTIES ('delta.enableChangeDataFeed'='true', 'owner'='ann')",
    "SET spark.sql.shuffle.partitions=200",
    "SET spark.sql.session.timeZone = 'UTC'",
    "WITH keys AS (SELECT key FROM a), passes AS (SELECT 'x' AS pass FROM b) SELECT * FROM keys JOIN passes ON key = pass",
    "WITH t AS (SELECT 'a' AS b) INSERT INTO c SELECT * FROM t",
    "SELECT * FROM read_files('s3://lake/raw/*.json', format => 'json')",
    "SELECT * FROM parquet.`s3://lake/raw/day=2026-11-22`",
    "OPTIMIZE t ZORDER BY (customer_key, token)",
    "SELECT 1 FROM a JOIN b ON a.token=b.token AND a.id=b.id",
    "SELECT 1 FROM a, b WHERE (a.token_id=b.token_id)",
    "SELECT count(DISTINCT api_key) AS keys FROM calls WHERE status = 'ok'",
    "SELECT * FROM calls WHERE api_key_status = 'active' OR signature = 'valid'",
    "SELECT * FROM docs WHERE signature = 'missing'",
    # Flink SQL
    (
        "CREATE TABLE k (id BIGINT, token STRING) WITH ('connector'='kafka', 'topic'='events', 'value.format'='json', "
        "'properties.bootstrap.servers'='broker:9092', 'scan.startup.mode'='earliest-offset')"
    ),
    "CREATE TABLE k (id BIGINT) WITH ('connector'='upsert-kafka', 'topic'='t', 'key.format'='avro', 'value.format'='avro')",
    "CREATE TABLE f (id BIGINT) WITH ('connector'='filesystem', 'path'='s3://lake/out', 'format'='parquet')",
    "CREATE TABLE d (id BIGINT) WITH ('connector'='datagen', 'rows-per-second'='100', 'fields.id.kind'='sequence')",
    "CREATE TABLE p (id BIGINT) WITH ('connector'='print')",
    "CREATE TABLE b (id BIGINT) WITH ('connector'='blackhole', 'sink.parallelism'='4')",
    "CREATE TABLE j (id BIGINT) WITH ('connector'='jdbc', 'url'='jdbc:postgresql://db:5432/bank', 'table-name'='accounts')",
    (
        "CREATE TABLE h (id BIGINT) WITH ('connector'='hudi', 'path'='s3://lake/h', 'table.type'='MERGE_ON_READ', "
        "'hoodie.datasource.write.recordkey.field'='id')"
    ),
    (
        "CREATE TABLE m (id BIGINT) WITH ('connector'='mysql-cdc', 'hostname'='db', 'port'='3306', 'database-name'='shop', "
        "'table-name'='orders', 'server-time-zone'='UTC')"
    ),
    (
        "CREATE TABLE i (id BIGINT) WITH ('connector'='iceberg', 'catalog-name'='lake', 'catalog-type'='hive', "
        "'warehouse'='s3://lake/wh')"
    ),
    (
        "CREATE TABLE l (id BIGINT) WITH ('connector'='kafka', 'topic'='t', 'format'='csv', 'csv.field-delimiter'=';', "
        "'json.ignore-parse-errors'='true')"
    ),
    "CREATE CATALOG lake WITH ('type'='paimon', 'warehouse'='s3://lake/wh')",
    (
        "CREATE TABLE o (id BIGINT) WITH ('bucket'='4', 'bucket-key'='id', 'merge-engine'='partial-update', "
        "'changelog-producer'='lookup', 'snapshot.time-retained'='1 h')"
    ),
    "CREATE TABLE x WITH (partitioned_by = ARRAY['dt', 'bank'], format = 'ORC', bucketed_by = ARRAY['token'], bucket_count = 8)",
    # dbt
    "{{ config(materialized='incremental', unique_key='token', incremental_strategy='merge') }} SELECT * FROM {{ ref('orders') }}",
    "{{ config(materialized='table', tags=['secret_santa'], partition_by='day') }} SELECT * FROM {{ source('raw', 'tokens') }}",
    "SELECT {{ dbt_utils.generate_surrogate_key(['token', 'id']) }} AS key FROM {{ ref('passes') }}",
    "{% set password_columns = ['pwd', 'hash'] %} SELECT {{ password_columns | join(', ') }} FROM t",
    "SELECT * FROM {{ ref('sessions') }} WHERE token_kind = '{{ var(\"kind\", \"card\") }}'",
    "{% if is_incremental() %} SELECT * FROM t WHERE password_updated_at > (SELECT max(at) FROM {{ this }}) {% endif %} ",
    "SELECT 'password' AS field, count(*) AS n FROM {{ ref('audit') }} GROUP BY 1",
    "-- the token of a session is hashed upstream\nSELECT token FROM {{ ref('sessions') }}",
    "/* secret: nothing */ SELECT 1",
    "SELECT * FROM OPENJSON(@body) WITH (id INT '$.id', token NVARCHAR(50) '$.token')",
)


def ordinary() -> list[str]:
    """The statements."""
    by_rule = (
        query.format(t=table, c=column)
        for query, table, column in product(QUERIES, TABLES, COLUMNS)
    )
    return [*BY_HAND, *islice(by_rule, 500 - len(BY_HAND))]
