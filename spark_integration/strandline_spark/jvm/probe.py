"""The probe: `probe.java`, compiled in the driver's JVM by the compiler that every Spark brings.

No jar is needed, and nothing has to be built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from py4j.java_gateway import JavaClass

from strandline_spark.jvm.class_names import COMPILER, IMPORTED

Probe = Any  # the Java object; py4j has no types


class ProbeError(RuntimeError):
    """The probe does not compile on this Spark: nothing can be reported."""


def new_probe(gateway_client: Any) -> Probe:
    """Return a probe of its own, with a queue and a claim of its own."""
    return _class_of(gateway_client).newInstance()


@lru_cache(maxsize=2)
def probe_of(gateway_client: Any) -> Probe:
    """Return the probe that answers whoever asks this JVM."""
    return new_probe(gateway_client)


@lru_cache(maxsize=2)
def _class_of(gateway_client: Any) -> Any:
    try:
        thread = JavaClass("java.lang.Thread", gateway_client).currentThread()
        compiler = JavaClass(COMPILER, gateway_client)()
        compiler.setParentClassLoader(thread.getContextClassLoader())
        compiler.cook(source())
        return compiler.getClassLoader().loadClass("strandline.Probe")
    except Exception as error:  # also one of PySpark's, or a JVM without the compiler
        raise ProbeError(
            f"this version of Spark is not supported, nothing is reported: its classes are not "
            f"those of probe.java ({str(error).strip()})"
        ) from error


def source() -> str:
    """Return the Java text, with its imports in front of its first line."""
    imports = " ".join(f"import {name};" for name in IMPORTED)
    text = resources.files(__package__).joinpath("probe.java").read_text(encoding="utf-8")
    return f"package strandline; {imports} {text}"


def answers_in(text: str) -> Any:
    """Return what the probe wrote down, where it holds no tree."""
    return json.loads(text.partition("\n")[2])


def questions_as_lines(questions: Mapping[str, Mapping[str, str]]) -> str:
    """Return questions by class as the probe learns them."""
    return "\n".join(
        f"{name}\t{question}\t{path}"
        for name, asked in questions.items()
        for question, path in asked.items()
    )
