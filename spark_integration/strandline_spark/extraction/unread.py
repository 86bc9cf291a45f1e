"""Parts of a plan that cannot be read. The rest is reported, and they are named."""

from __future__ import annotations

from py4j.protocol import Py4JNetworkError

from strandline_spark.jvm.client import JAVA_FAILED
from strandline_spark.swallowed import swallowed

UNREADABLE = (*JAVA_FAILED, LookupError, TypeError, ValueError, AttributeError, RecursionError)


def unread(part: str, error: Exception) -> str:
    """Name the part and the reason. That the JVM is gone concerns all of a plan."""
    if isinstance(error, Py4JNetworkError):
        raise error
    return f"{part}: {swallowed('a part of a plan could not be read', error)}"
