"""Secrets that are known by their own form, whatever stands around them.

Each kind with examples.
"""

import re
from typing import NamedTuple

from .places import Words


class TokenForm(NamedTuple):
    """A kind of token: how it looks, one that is hidden, and what only looks like it."""

    name: str
    pattern: str
    hides: tuple[str, ...]
    keeps: tuple[str, ...]


_START = r"(?<![A-Za-z0-9_])"
TOKENS = (
    TokenForm(
        "aws access key",
        r"A(?:KIA|SIA)[A-Z0-9]{12,}(?![A-Za-z0-9_])",
        ("AKIAIOSFODNN7EXAMPLE",),
        ("AKIA_table", "asia"),
    ),
    TokenForm(
        "github",
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
        (
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
        ),
        ("ghp_total",),
    ),
    TokenForm("gitlab", r"glpat-[\w-]{16,}", ("glpat-abcDEF123456789xyzAB",), ("glpat-x",)),
    TokenForm("slack", r"xox[abeoprs]-[\w-]{8,}", ("xoxb-123456789012-abcdefGHIJKL",), ("xoxb-",)),
    TokenForm(
        "json web token",
        r"(?<!-)eyJ[\w-]{6,}\.[\w-]+\.[\w-]*",
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",),
        ("eyJob.name",),
    ),
    TokenForm(
        "strandline",
        r"slk_[\w-]{40,}|(?<!-)st_[A-Za-z0-9]{4,32}_(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}",
        ("st_k3f9a2_" + "Ab3" * 10, "slk_" + "x" * 43),
        ("st_customer_order_history_by_region", "st_area"),
    ),
    TokenForm(
        "databricks",
        r"dapi[0-9a-f]{16,}",
        ("dapi0123456789abcdef0123456789abcdef",),
        ("dapi_calls",),
    ),
    TokenForm(
        "google", r"AIza[\w-]{20,}|(?<!-)ya29\.[\w-]{20,}", ("AIza" + "Sy1" * 11,), ("AIzawa",)
    ),
    TokenForm(
        "stripe",
        r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{12,}",
        ("sk_live_4eC39HqLyjWDarjtT1zdp7dc",),
        ("pk_customer_number", "sk_test_id"),
    ),
    TokenForm(
        "openai",
        r"(?<!-)sk-(?:proj-|ant-)?(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}",
        ("sk-proj-Ab3dEf6hIj9kLmNoPqRsTuVw",),
        ("sk-dimension-of-customers-all",),
    ),
    TokenForm("npm", r"npm_[A-Za-z0-9]{36}", ("npm_" + "aB3" * 12,), ("npm_packages",)),
    TokenForm(
        "hugging face",
        r"hf_(?=[A-Za-z]*\d)[A-Za-z0-9]{30,}",
        ("hf_" + "aB3" * 11,),
        ("hf_datasets",),
    ),
    TokenForm(
        "bearer",
        r"(?:[Bb]earer|[Bb]asic)\s+(?=[\w+/=.~-]*\d)[\w+/=.~-]{16,}",
        ("Bearer abcdefgh12345678ijkl",),
        ("Bearer authentication", "Basic information about 2026"),
    ),
)
_TOKEN = re.compile(
    _START + "(?:" + "|".join(f"(?:{one.pattern})" for one in TOKENS) + ")", re.ASCII
)
# What each of these begins with.
_BEGINNINGS = (
    *(
        "AKIA",
        "ASIA",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "eyJ",
        "slk_",
        "st_",
        "dapi",
        "AIza",
    ),
    *("ya29.", "sk_", "pk_", "rk_", "sk-", "npm_", "hf_", "Bearer", "bearer", "Basic", "basic"),
)
BY_BEGINNING = Words(_TOKEN, dict.fromkeys(_BEGINNINGS, 0))
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?P<body>(?:[^-]+|-(?!----(?:BEGIN|END) ))*)"
    r"(?P<end>-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
_KEY_BODY = re.compile(
    r"\s*(?:[\r\n]|\\+[rn])|\s*[A-Za-z0-9+/=]{20}"
)  # where no END is: no mere mention


def hide_tokens(text: str, gone: str) -> str:
    """The text without known kinds of tokens and without private keys.

    >>> hide_tokens("push with ghp_16C7e42F292c6912E7710c838347Ae178B4a", "***")
    'push with ***'
    """
    text = _without_known(text, gone)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(
            lambda found: gone if found["end"] or _KEY_BODY.match(found["body"]) else found[0], text
        )
    return text


def _without_known(text: str, gone: str) -> str:
    pieces, end = [], 0
    search = BY_BEGINNING.searching(text, text)
    while found := search(end):
        pieces += [text[end : found.start()], gone]
        end = found.end()
    return "".join([*pieces, text[end:]]) if pieces else text
