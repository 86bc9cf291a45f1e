"""Secrets planted by rule.

Names times forms times values, each value once, with the text, JSON or address that holds it.
"""

from collections.abc import Iterator
from itertools import count, product
from typing import NamedTuple

VALUES = (
    "hunter{:04}xyz",
    "wJalrXUtnFEMI/K7MDENG{:04}bPxRfi",
    "correcthorse{:04}battery",
    "s3cr3t-{:04}-dashes",
    "Zm9vYmFy{:04}QUJD==",
)
NAMES = (
    "password",
    "DB_PASSWORD",
    "db.password",
    "fs.s3a.secret.key",
    "passcode",
    "passphrase",
    "api_key",
    "api key",
    "apiKey",
    "client_secret",
    "signing_key",
    "access_token",
    "aws_secret_access_key",
    "encryption_key",
    "pwd",
    "credential",
    "private_key",
    "storage-key",
    "hmac_key",
    "refreshToken",
)
# Of a text: forms that any name takes, those of names that are one word, and those of names with
# dots or dashes too.
ANY_NAME = (
    '{{"{name}": "{value}"}}',
    "{{'{name}': '{value}'}}",
    '{{\\"{name}\\": \\"{value}\\"}}',
    'x = "{{\\\\\\"{name}\\\\\\": \\\\\\"{value}\\\\\\"}}"',
    "{name} = '{value}'",
    "{name}='{value}'",
    "{name}: '{value}'",
    "{name}: {value}",
    "user: ann\n{name}: {value}\nhost: x",
    "OPTIONS (url 'x', '{name}' '{value}')",
    "CREATE TABLE t WITH ('connector'='jdbc', '{name}'='{value}')",
    "ALTER TABLE t SET TBLPROPERTIES ('{name}' = '{value}')",
    "<property><name>{name}</name><value>{value}</value></property>",
    "option('{name}', '{value}')",
)
ONE_WORD = (
    "java -D {name}={value} x",
    "spark-submit --conf spark.app.{name}={value} job.py",
    "{name}={value}",
    "a=b;{name}={value};c=d",
    "x=1&{name}={value}&y=2",
    "cmd --{name} {value} -v",
    "cmd --{name}={value}",
    "export {name}={value}",
    "Map(user -> ann, {name} -> {value})",
    "['cmd', '--{name}', '{value}']",
    "SELECT * FROM dblink('host=h {name}={value}', 'SELECT 1')",
    "SET spark.hadoop.x.{name}={value}",
    "def connect({name}: str = '{value}'): ...",
)
ALONE = (
    "CREATE USER a IDENTIFIED BY '{value}'",
    "ALTER ROLE a PASSWORD '{value}'",
    "SELECT aes_encrypt(name, '{value}') FROM t",
    "SELECT try_aes_decrypt(name, '{value}', 'GCM') FROM t",
    "SELECT pgp_sym_encrypt(name, '{value}') FROM t",
    "SELECT hmac(name, '{value}', 'sha256') FROM t",
    "SELECT ENCRYPTBYPASSPHRASE('{value}', name) FROM t",
    'SELECT encode(hmac(name, "{value}", "sha256"), "hex") FROM t',
    "curl -u ann:{value} https://host/x",
    "curl -H 'Cookie: a=1; session={value}' https://host/x",
    "curl -H 'Authorization: Bearer {value}' https://host/x",
    '{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{value}"}}}}}}',
    "s3a://KEY:{value}@bucket/path",
    "jdbc:postgresql://db/x?user=u&password={value}",
    "https://host/container/file?sv=2024-01-01&sig={value}",
    "container/file?sv=2024-01-01&sig={value}",
    "https://hooks.slack.com/services/T000/B000/{value}",
    "https://discord.com/api/webhooks/123/{value}",
    "https://x.webhook.office.com/webhookb2/{value}",
    "Driver={{ODBC}};UID=sa;PWD={{{value}}};",
    "AccountName=a;AccountKey={value};EndpointSuffix=x",
    "//npm.example.org/:_authToken={value}",
    "- name: DB_PASSWORD\n  value: {value}\n",
)
TOKENS = (
    "AKIAIOSFODNN7EX{:04}A",
    "ghp_16C7e42F292c6912E7710c838347{:04}",
    "github_pat_11ABCDEFG_{:04}abcdefghijklmnop",
    "xoxb-123456789012-abcdef{:04}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI{:04}In0.c2lnbmF0dXJl{:04}",
    "st_k3f9a2_Zx81mPq0Lr7sVt3uWy5a{:04}",
    "glpat-abcDEF123456789{:04}x",
    "sk_live_4eC39HqLyjWDarjtT1{:04}",
)
BESIDE = (
    "push with {value} now",
    "{value}",
    "x = '{value}'",
    '{{"note": "{value}"}}',
    "name/{value}/part",
    "SELECT '{value}' FROM t",
)


class Canary(NamedTuple):
    """A text with one secret in it."""

    text: str
    secret: str


def canaries() -> list[Canary]:
    """More than a thousand, each secret once."""
    return list(_planted(count()))


def _planted(numbers: "count[int]") -> Iterator[Canary]:
    words = [name for name in NAMES if name.isidentifier() or "-" in name]
    forms = [*product(ANY_NAME, NAMES), *product(ONE_WORD, words), *product(ALONE, [""] * 5)]
    for form, name in forms:
        number = next(numbers)
        secret = VALUES[number % len(VALUES)].format(number)
        yield Canary(form.format(name=name, value=secret), secret)
    for form, token in product(BESIDE * 10, TOKENS):
        number = next(numbers)
        secret = token.format(number, number)
        yield Canary(form.format(value=secret), secret)


def leaks(planted: list[Canary], output: str) -> list[str]:
    """The texts whose secret is in an output, whole or a long part of it."""
    return [
        canary.text for canary in planted if any(part in output for part in parts(canary.secret))
    ]


def parts(secret: str) -> list[str]:
    """Return the parts of a secret that reveal it.

    Itself, and what of it stands between signs and has its number.
    """
    number = secret.rstrip("=x")
    return [
        secret,
        *(part for part in number.replace("/", " ").replace(".", " ").split() if len(part) > 12),
    ]
