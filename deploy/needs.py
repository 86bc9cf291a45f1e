"""Says in one line what this machine lacks, and the way out, before anything is downloaded.

Looks for the two things that `make` cannot fetch: Python's own venv and Java. Prints nothing when
both are there.
"""

from __future__ import annotations

import importlib.util
import sys

from deploy import jars


def faults(*, java: bool = True) -> list[str]:
    """Return the missing things, each with its remedy. `java`: whether that is needed."""
    lacks = []
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        lacks.append(
            f"{sys.executable} cannot make environments; install python{version}-venv, "
            "or use make PYTHON=..."
        )
    if java:
        try:
            jars.java()
        except jars.JarsError as error:
            lacks.append(str(error))
    return lacks


if __name__ == "__main__":
    missing = faults(java="--without-java" not in sys.argv)
    for fault in missing:
        print(fault, file=sys.stderr)
    sys.exit(bool(missing))
