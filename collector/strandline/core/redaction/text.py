"""Redaction of any text, by the rules that emitter and collector share."""

from strandline.core.redaction.rules import hide

GONE = "[redacted]"


def redact_text(text: str) -> str:
    """Return the text with a mark in place of its secrets.

    >>> redact_text("jdbc:postgresql://ann:pw@db:5432/bank?password=pw")
    'jdbc:postgresql://db:5432/bank'
    >>> redact_text("s3a://KEY:SECRET@bucket/path"), redact_text("abfss://data@lake.dfs.core.windows.net/t")
    ('s3a://bucket/path', 'abfss://data@lake.dfs.core.windows.net/t')
    """
    return hide(text, GONE)
