"""A look at the start whether the private fields that are relied on are here.

Each has a fallback, which knows less. What is not as expected is named once in the log and in the
run facet `strandline_emitter`. So nobody has to guess why a snapshot is only observed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from strandline_spark.jvm.class_names import FIELDS, Internal
from strandline_spark.jvm.client import Jvm
from strandline_spark.jvm.probe import answers_in

_LOG = logging.getLogger("strandline")


def unavailable(jvm: Jvm, of_formats: Iterable[Internal] = ()) -> tuple[str, ...]:
    """Return what the emitter will not know in this JVM.

    Each is named in the log, once.
    """
    fields = {f"{field.owner} {field.field}": field.lost for field in (*FIELDS, *of_formats)}
    reasons = tuple(fields[line] for line in answers_in(jvm.probe.lacking("\n".join(fields))))
    for lost in reasons:
        _LOG.warning("strandline: not available with these versions: %s", lost)
    return reasons
