"""Secrets with a known form of their own, whatever stands around them."""

import re

# Kinds of tokens: their beginnings, the rest, and the rest's least length.
TOKENS = (
    (("AKIA", "ASIA"), r"[A-Z0-9]{12,}(?![A-Za-z0-9_])", 12),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{20,}", 20),
    (("github_pat_",), r"\w{20,}", 20),
    (("glpat-", "glrt-", "gldt-"), r"[\w-]{16,}", 16),
    (("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"), r"[\w-]{8,}", 8),
    (("xapp-",), r"(?=[\w-]{0,99}\d)[\w-]{16,}", 16),
    (("eyJ",), r"(?<!-eyJ)[\w-]{6,}\.[\w-]+\.[\w-]*", 6),
    (("slk_",), r"[\w-]{40,}", 40),
    (("st_",), r"(?<!-st_)[A-Za-z0-9]{4,32}_(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}", 25),
    (("dapi",), r"[0-9a-f]{16,}", 16),
    (("AIza",), r"[\w-]{20,}", 20),
    (("ya29.",), r"(?<!-ya29.)[\w-]{20,}", 20),
    (
        ("sk_live_", "pk_live_", "rk_live_", "sk_test_", "pk_test_", "rk_test_"),
        r"[A-Za-z0-9]{12,}",
        12,
    ),
    (("sk-",), r"(?<!-sk-)(?=[\w-]*\d)(?=[\w-]*(?:[A-Z]|[a-z\d]{20}))[\w-]{20,}", 20),
    (("npm_",), r"[A-Za-z0-9]{36}", 36),
    (("hf_",), r"(?=[A-Za-z]*\d)[A-Za-z0-9]{30,}", 30),
    (("pypi-",), r"(?=[\w-]{0,99}\d)(?=[\w-]{0,99}[A-Z])[\w-]{16,}", 16),
    (("hvs.", "hvb."), r"[\w-]{20,}", 20),
    (("dckr_pat_", "dop_v1_", "rubygems_"), r"(?=[\w-]{0,99}\d)[\w-]{20,}", 20),
    (("SG.",), r"[\w-]{16,}\.[\w-]{16,}", 16),
    (("shpat_", "shpss_", "shpca_"), r"[0-9a-fA-F]{16,}", 16),
    (("AGE-SECRET-KEY-", "NRAK-"), r"[A-Z0-9]{20,}", 20),
)
_SCHEMES = ("Bearer", "bearer", "BEARER", "Basic", "basic", "BASIC", "NTLM", "Negotiate")
_AFTER_SCHEME = r"\s+(?=[\w+/=.~-]*\d)[\w+/=.~-]{16,}"


def _pattern(beginning: str, rest: str) -> re.Pattern[str]:
    # The word's start is checked behind the beginning: `re` looks for a literal much faster.
    start = re.escape(beginning)
    return re.compile(rf"{start}(?<![A-Za-z0-9_]{start}){rest}", re.ASCII)


_PATTERNS = [(word, _pattern(word, rest)) for words, rest, _ in TOKENS for word in words]
_PATTERNS += [(scheme, _pattern(scheme, _AFTER_SCHEME)) for scheme in _SCHEMES]
# AUTH of SMTP and Redis, and the parameters of schemes that sign
_AUTH = re.compile(
    r"\bAUTH\s{1,5}(?:PLAIN|LOGIN|default)\s{1,5}(?=\S{0,200}\d)(?P<value>[\w+/=.~!@#$%^&*-]{6,})"
)
_SIGNED = re.compile(
    r"\b(?:Digest|Hawk|OAuth)\s{1,5}(?=[^\n]{0,500}\b(?:response|mac|oauth_\w+|signature)=)"
    r"(?P<value>(?:\w{1,60}=(?:\\*\"[^\"\\]*\\*\"|[\w+/=.~!@#$%^&*-]+)(?:,\s{0,5})?)+)"
)
_IN_SCHEMES = {"AUTH": _AUTH, "Digest": _SIGNED, "Hawk": _SIGNED, "OAuth": _SIGNED}
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<body>(?:[^-]+|-(?!----(?:BEGIN|END) ))*)"
    r"(?P<end>-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
# Without its END, only what looks like a key is one: a message may mention the marker.
_KEY_BODY = re.compile(r"\s*(?:[\r\n]|\\+[rn])|\s*[A-Za-z0-9+/=]{20}")

# In lower case and without look-around: each text with a token matches one of these.
HINTS = "|".join(
    [
        re.escape(word.lower()) + rf"[a-z0-9_.-]{{{least}}}"
        for words, _, least in TOKENS
        for word in words
    ]
    + [r"(?:bearer|basic|ntlm|negotiate|auth|digest|hawk|oauth)(?:[ \t\n\r\f\v]|\\[nrtf])"]
)


def hide_tokens(text: str, gone: str) -> str:
    """Return the text without known kinds of tokens and without private keys.

    >>> hide_tokens("push with ghp_16C7e42F292c6912E7710c838347Ae178B4a", "***")
    'push with ***'
    """
    for beginning, pattern in _PATTERNS:
        if beginning in text:
            text = pattern.sub(lambda _: gone, text)
    for word, pattern in _IN_SCHEMES.items():
        if word in text:
            text = pattern.sub(lambda match: match[0].removesuffix(match["value"]) + gone, text)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(lambda key: gone if _is_key(key) else key[0], text)
    return text


def _is_key(key: re.Match[str]) -> bool:
    return key["end"] is not None or _KEY_BODY.match(key["body"]) is not None
