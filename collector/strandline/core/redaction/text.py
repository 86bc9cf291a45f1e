"""Secrets in any text, by the rules that emitter and collector share (`rules/`)."""

from strandline.core.redaction.rules import hide

GONE = "[redacted]"


def redact_text(text: str) -> str:
    """Text whose addresses have only scheme, host, port and path, and whose SQL options only harmless values.

    >>> redact_text("jdbc:postgresql://ann:pw@db:5432/bank?password=pw")
    'jdbc:postgresql://db:5432/bank'
    >>> redact_text("s3a://KEY:SECRET@bucket/path"), redact_text("abfss://data@lake.dfs.core.windows.net/t")
    ('s3a://bucket/path', 'abfss://data@lake.dfs.core.windows.net/t')
    """
    return hide(text, GONE)
