"""Nothing that looks like a secret is sent; lineage stays unchanged."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from fixtures.emitter.builders import Sent, announcer, conf, insert, table
from strandline_spark.model.statement import Catalog, Column, Origin
from strandline_spark.openlineage.events import EventContent, RunOf
from strandline_spark.openlineage.facets import SourceOffsets, StrandlineBarrierRunFacet
from strandline_spark.openlineage.redaction import (
    clean_address,
    clean_expression,
    clean_message,
    clean_text,
    redacted,
)

SECRETS = [
    "hunter2",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "dapi0123456789abcdef0123456789abcdef",
    "p@ss:w0rd",
    "s3cr3t-with-dashes",
    "correcthorsebatterystaple",
    "Tr0ub4dor&3",
]
ADDRESSES = [
    "s3a://KEY:{}@bucket/wh",
    "jdbc:postgresql://user:{}@db:5432/bank",
    "jdbc:postgresql://db:5432/bank?user=u&password={}",
    "jdbc:sqlserver://db:1433;databaseName=bank;user=u;password={}",
    "jdbc:oracle:thin:scott/{}@//db:1521/bank",
    "https://hub/api?token={}",
    "https://user:{}@hub/api",
    "mongodb://user:{}@a:27017,b:27017/bank",
    "wasbs://c@account.blob.core.windows.net/wh?sig={}",
    "redis://:123/{}@cache",
]
EXPRESSIONS = [
    "AES_ENCRYPT(ssn, '{}')",
    "CONCAT(name, '{}')",
    "CASE WHEN token = '{}' THEN 1 END",
    "HMAC('{}', id)",
    "CONCAT(REPLACE(path, '\\\\', '/'), '{}')",
    "CONCAT(path, '\\\\\\' {}')",
    "CONCAT(path, 'two\\\nlines {}')",
    "CONCAT(`it's`, '{}')",
    "CONCAT(path, '{}",
]
MESSAGES = [
    "[CAST_INVALID_INPUT] The value '{}' of the type \"STRING\" cannot be cast",
    "connect to jdbc:mysql://u:{}@db/bank failed",
    'Login failed for "{}"',
    "Can't log in with '{}'",
    "the clients' login '{}'",
    "no login as 'O'Brien {}'",
    "no folder 'C:\\' and no login as '{}'",
    "not a login: b'{}'",
    "not a date: DATE'{}'",
    'a 6" disk and "{}"',
    'cannot resolve "aes_encrypt(name, {})"',
    "two lines: '\n{}'",
    "could not log in with password {}",
    "the token is {}",
]
PLACES = {"address": ADDRESSES, "expression": EXPRESSIONS, "message": MESSAGES}
CLEAN = {
    "address": clean_address,
    "expression": clean_expression,
    "message": clean_message,
}


@pytest.mark.parametrize("kind", CLEAN)
def test_planted_secret_is_not_sent(kind: str) -> None:
    leaked = []
    for place, secret in product(PLACES[kind], SECRETS):
        cleaned = CLEAN[kind](place.format(secret))
        if any(part in cleaned for part in (secret, *secret.split("/")) if len(part) > 5):
            leaked.append((place, secret, cleaned))

    assert leaked == []


def everywhere(secret: str) -> list[dict[str, Any]]:
    """Events of a job whose every text holds the secret."""
    sent = Sent()
    settings = replace(
        conf(),
        namespace="bank",
        captured={"spark.hadoop.fs.s3a.secret.key": secret, "spark.x": f"password={secret}"},
    )
    dataset = replace(
        table("bank.credits"),
        namespace=f"s3a://KEY:{secret}@bucket",
        catalog=Catalog(
            "lake", "jdbc", "iceberg", f"s3a://K:{secret}@b/wh", f"jdbc:mysql://u:{secret}@db/x"
        ),
        facets={
            "options": {
                "password": secret,
                "url": f"jdbc:mysql://u:{secret}@db/x?password={secret}",
            }
        },
    )
    columns = (
        Column(
            "id",
            (
                Origin(
                    ("ns", "t"), "id", "DIRECT", "TRANSFORMATION", f"AES_ENCRYPT(id, '{secret}')"
                ),
            ),
        ),
    )
    barrier = StrandlineBarrierRunFacet(
        barrierId=1,
        queryId="q",
        batchId=0,
        phase="committed",
        checkpointLocation=f"s3a://KEY:{secret}@bucket/checkpoint",
        sources=[SourceOffsets(f"JDBC[url=jdbc:x://h/y?password={secret}]", "1", None)],
    )
    run = RunOf("22222222-2222-4222-8222-222222222222", f"job password={secret}", "STREAMING")
    statement = replace(insert(dataset, table("bank.transfers")), columns=columns)
    announcer(sent, settings).say(
        "START", run, 0, EventContent([statement], barrier=barrier, error=f"token='{secret}'")
    )
    return sent.events


@pytest.mark.parametrize("word", ["HUNTER2", "739201"])
def test_quoted_words_that_look_like_types_or_numbers_are_hidden_too(word: str) -> None:
    assert word not in clean_message(f'no login as "{word}"')
    assert word not in clean_expression(f"(pin = '{word}')")


def test_secret_keys_hide_their_values_but_columns_and_facets_stay() -> None:
    own = {
        "credentials": {"value": "hunter2", "on": True},
        "secret": 739201,
        "tokens": [{"at": 1.5}],
    }
    columns = {
        "fields": {"password": {"inputFields": [{"name": "bank.people", "field": "password"}]}}
    }

    assert redacted({"facets": {"auth": own, "columnLineage": columns}}) == {
        "facets": {
            "auth": {
                "credentials": {"value": "***", "on": True},
                "secret": "***",
                "tokens": [{"at": "***"}],
            },
            "columnLineage": columns,
        }
    }


def test_event_contains_no_planted_secret() -> None:
    for secret in SECRETS:
        (event,) = everywhere(secret)

        assert secret not in repr(event)
        assert event["outputs"][0]["namespace"] == "s3a://bucket"


@pytest.mark.parametrize(
    "address",
    [
        "file",
        "/warehouse/bank/credits",
        "s3://bucket/path/date=2026-11-21/part@1",
        "hdfs://nn:8020/user/a@b/x",
        "abfss://lake@account.dfs.core.windows.net/wh",
        "jdbc:postgresql://db:5432/bank",
        "kafka://a:9092,b:9092",
        "lake.bank.credits",
        "arn:aws:glue:eu-west-1:123456789012",
        "password_resets",
    ],
)
def test_an_address_without_secrets_stays_as_it_is(address: str) -> None:
    assert clean_address(address) == address


@pytest.mark.parametrize(
    "expression",
    [
        "DATE_FORMAT(birthday, 'yyyyMMdd')",
        "TO_DATE(x, 'dd/MM/yyyy HH:mm:ss')",
        "ABS(SUM(id))",
        "CONCAT(a.name, ' ', b.company_name)",
        "SPLIT(x, ',')",
        "my_split_udtf(name).word",
        "REPLACE(path, '\\\\', '/')",
        "(placed_at + INTERVAL '1 02:03:04' DAY TO SECOND)",
        "IF(token_count > 3, password_age, 0)",
    ],
)
def test_an_expression_without_values_stays_as_it_is(expression: str) -> None:
    assert clean_expression(expression) == expression


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        (
            "jdbc:sqlserver://s:1433;databaseName=shop;user=ann;trustStore=/etc/keys.jks",
            "jdbc:sqlserver://s:1433",
        ),
        ("jdbc:sqlserver://s:1433/shop;user=ann", "jdbc:sqlserver://s:1433/shop"),
        ("jdbc:derby:/data/shop;user=ann;create=true", "jdbc:derby:/data/shop"),
        ("jdbc:h2:mem:shop;USER=ann", "jdbc:h2:mem:shop"),
        ("jdbc:hive2://h:10000/web;sslTrustStore=/etc/keys.jks?a=b", "jdbc:hive2://h:10000/web"),
    ],
)
def test_options_after_a_semicolon_are_removed_from_database_addresses(
    address: str, kept: str
) -> None:
    assert clean_address(address) == kept
    assert clean_text(f"it reads {address} and ends") == f"it reads {kept} and ends"


def test_message_keeps_error_class_and_text_without_values_and_stack() -> None:
    message = (
        '[CAST_INVALID_INPUT] The value \'Bobby\' of the type "STRING" cannot be cast to "BIGINT". '
        'Set "spark.sql.ansi.enabled" to false. SQLSTATE: 22018\n\tat org.apache.Secret.main(Secret.java:1)'
    )

    assert clean_message(message) == (
        '[CAST_INVALID_INPUT] The value \'***\' of the type "STRING" cannot be cast to "BIGINT". '
        'Set "spark.sql.ansi.enabled" to false. SQLSTATE: 22018'
    )


@pytest.mark.parametrize(
    "message",
    [
        "[TABLE_OR_VIEW_NOT_FOUND] The table `bank`.`it's` cannot be found. Verify the spelling. SQLSTATE: 42P01",
        '[DATATYPE_MISMATCH] Types differ: ("ARRAY<STRING>", "DECIMAL(10,2)", "INTERVAL DAY TO SECOND", "TIMESTAMP_NTZ").',
        "[FIELD_NOT_FOUND] Can't find it, or the token is expired: the password for that user is not there",
    ],
)
def test_a_message_without_values_stays_as_it_is(message: str) -> None:
    assert clean_message(message) == message


def test_offsets_of_any_topic_stay_as_they_are() -> None:
    offsets = '{"auth-events":{"0":5,"1":7},"passengers":{"0":1}}'

    assert redacted({"sources": [{"endOffset": offsets}]}) == {"sources": [{"endOffset": offsets}]}


@pytest.mark.parametrize(
    "message",
    [
        "ModuleNotFoundError: No module named 'bank.loans_v2_helpers'",
        "ImportError: cannot import name 'Loan' from 'bank.loans' (/opt/jobs/bank/loans.py)",
        'File "/opt/jobs/nightly_2024/load.py", line 3, in <module>',
        "FileNotFoundError: [Errno 2] No such file or directory: 'conf/bank.yaml'",
        "AttributeError: 'NoneType' object has no attribute 'groupBy'",
        "NameError: name 'balances' is not defined",
    ],
)
def test_message_keeps_file_and_module_names(message: str) -> None:
    assert clean_message(message) == message


@pytest.mark.parametrize(
    "message",
    [
        "Py4JJavaError: An error occurred while calling o602.sql.\n: java.lang.ArithmeticException: / by zero",
        "no bucket: AmazonS3Exception: it is not there",
        "Py4JNetworkError",
    ],
)
def test_message_keeps_its_error_class(message: str) -> None:
    assert clean_message(message) == message


@pytest.mark.parametrize(
    "token", ["x7Kp9vQ2mN4LError", "X7Kp9vQ2/mN4LError", "X7Kp9vQ2mN4LErrors", "X7Kp9vQ2mN4L"]
)
def test_a_secret_that_looks_like_the_class_of_an_error_is_hidden(token: str) -> None:
    assert token not in clean_message(f"refused {token}: no such login")
