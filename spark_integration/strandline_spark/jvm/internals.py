"""Trials at the start of whether what is relied on of Spark's and the formats' internals is here.

Each has a fallback, which knows less or takes longer. What is not as expected is named once in the
log and in the run facet `strandline_emitter`. So nobody has to guess why a snapshot is only
observed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from strandline_spark.jvm.class_names import (
    CONNECTOR_CATALOG,
    FIELDS,
    SCALA_OPTION,
    SPARK,
    Internal,
)
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, class_names_hold
from strandline_spark.jvm.parsed_texts import (
    IDENTIFIER,
    METRICS,
    OPTION,
    TEXTS,
    ParsedText,
    counts_in,
    text_in,
)

_LOG = logging.getLogger("strandline")


def unavailable(jvm: Jvm, of_formats: Iterable[Internal] = ()) -> tuple[str, ...]:
    """Return what the emitter will not know in this JVM, or asks in another way.

    Each is named in the log, once.
    """
    reasons = (
        *_tricks(jvm),
        *(trick.lost for trick in (*FIELDS, *of_formats) if _lacks(jvm, trick)),
    )
    for lost in reasons:
        _LOG.warning("strandline: not available with these versions: %s", lost)
    return reasons


def _tricks(jvm: Jvm) -> Iterator[str]:
    if not class_names_hold(jvm.view._gateway_client):
        yield "class names in one call (commons-lang3 is not here): reading plans takes longer"
    for text in TEXTS:
        text.holds = _holds(jvm, text)
        if not text.holds:
            yield text.instead


def _holds(jvm: Jvm, text: ParsedText) -> bool:
    """Return whether a text is as it was seen. What cannot be tried is not relied on."""
    try:
        return _TRIALS[text](jvm)
    except (*JAVA_FAILED, TypeError):
        return False


def _option(jvm: Jvm) -> bool:
    option = jvm.static(SCALA_OPTION, "apply")
    shown = [str(option(value).toString()) for value in ("a(b)", None)]
    return [text_in(option) for option in shown] == ["a(b)", None]


def _identifier(jvm: Jvm) -> bool:
    identifier = jvm.static(f"{CONNECTOR_CATALOG}Identifier", "of")(
        jvm.array("java.lang.String", "a", "b"), "c"
    )
    return str(identifier.toString()) == "a.b.c"


def _metrics(jvm: Jvm) -> bool:
    """Of a metric that is given a name without any context's knowing of it."""
    metric = jvm.new(f"{SPARK}sql.execution.metric.SQLMetric", "sum", 0)
    some = jvm.static(SCALA_OPTION, "apply")("number of rows")
    getattr(metric, "metadata_$eq")(jvm.new(f"{SPARK}util.AccumulatorMetadata", 7, some, False))
    return counts_in(
        str(jvm.new("scala.collection.immutable.Map$Map1", "rows", metric).toString())
    ) == {"rows": 0}


_TRIALS: Mapping[ParsedText, Callable[[Jvm], bool]] = {
    OPTION: _option,
    IDENTIFIER: _identifier,
    METRICS: _metrics,
}


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
