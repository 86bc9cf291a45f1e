"""A look at the start whether the private fields that are relied on are here.

Each has a fallback, which knows less. What is not as expected is named once in the log and in the
run facet `strandline_emitter`. So nobody has to guess why a snapshot is only observed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from strandline_spark.jvm.class_names import FIELDS, Internal
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm

_LOG = logging.getLogger("strandline")


def unavailable(jvm: Jvm, of_formats: Iterable[Internal] = ()) -> tuple[str, ...]:
    """Return what the emitter will not know in this JVM.

    Each is named in the log, once.
    """
    reasons = tuple(field.lost for field in (*FIELDS, *of_formats) if _lacks(jvm, field))
    for lost in reasons:
        _LOG.warning("strandline: not available with these versions: %s", lost)
    return reasons


def _lacks(jvm: Jvm, internal: Internal) -> bool:
    """Return true if the class is here without the field.

    A class that is not here does no harm.
    """
    try:
        owner = _loaded(jvm, internal.owner)
    except JAVA_FAILED:
        return False
    return jvm.declared(owner, internal.field) is None


def _loaded(jvm: Jvm, name: str) -> JavaObject:
    loader = jvm.view.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.view.java.lang.Class.forName(name, False, loader)
