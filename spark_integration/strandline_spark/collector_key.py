"""The collector's API key: from Spark conf, from a file that it names, or from the environment.

Spark conf is shown in the command line of spark-submit, in Spark's page and in its event log. So a
file or the environment of the driver is the better place. The file is read once, when the
application starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from strandline_spark.conf_keys import COLLECTOR_TOKEN, COLLECTOR_TOKEN_FILE

KEY, KEY_FILE = "STRANDLINE_KEY", "STRANDLINE_KEY_FILE"  # as the collector's own commands call them


def collector_key(
    get: Callable[[str], str | None], environ: Mapping[str, str], faults: list[str] | None = None
) -> str | None:
    """Return the first key among conf, the conf's file, environment and the environment's file.

    The reason why a file cannot be read is added to the faults.

    >>> collector_key({"spark.strandline.collector.token": "a"}.get, {"STRANDLINE_KEY": "b"})
    'a'
    """
    for value, name, file in (
        (get(COLLECTOR_TOKEN), COLLECTOR_TOKEN_FILE, get(COLLECTOR_TOKEN_FILE)),
        (environ.get(KEY), KEY_FILE, environ.get(KEY_FILE)),
    ):
        key = (value or "").strip() or (_in_file(name, file, faults) if file else None)
        if key:
            return key
    return None


def _in_file(name: str, file: str, faults: list[str] | None) -> str | None:
    try:
        key = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        key, why = (
            "",
            f"cannot be read ({getattr(error, 'strerror', None) or type(error).__name__})",
        )
    else:
        why = "is empty"
    if not key and faults is not None:
        faults.append(f"{name}: {file} {why}: no key is taken from it")
    return key or None
