"""The application's part of job names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from strandline_spark.conf_keys import APP_NAME

_NAMELESS = {
    "pyspark-shell", "Spark shell", "cli.py", "ipykernel_launcher.py", "colab_kernel_launcher.py",
    "ipython", "dbt",
}  # fmt: skip
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # Spark's own for no name


def application_name(
    entries: Mapping[str, str], environ: Mapping[str, str], script: str | None
) -> tuple[str, str | None]:
    """Return the application's name in job names, and a warning if it has no name of its own.

    `spark.openlineage.appName` wins. Shells, launchers and kernels are no names: the notebook or
    script that runs in them is.

    >>> application_name({"spark.app.name": "pyspark-shell"}, {}, "/jobs/nightly.py")
    ('nightly.py', None)
    """
    name = entries.get(APP_NAME)
    if name:
        return name, None
    name = entries.get("spark.app.name") or "spark"
    if name not in _NAMELESS and not _UUID.fullmatch(name):
        return name, None
    for place in (environ.get("JPY_SESSION_NAME"), script):
        known = _last_part(place or "")
        if known and known not in _NAMELESS:
            return known, None
    return name, (
        f"the application has no name of its own ({name}), so its jobs share names with those of "
        f"others: set {APP_NAME}"
    )


def _last_part(path: str) -> str:
    """Return the name of a script or notebook, or of the package that `python -m` runs.

    >>> _last_part("/jobs/nightly.py"), _last_part("/lib/nightly/__main__.py")
    ('nightly.py', 'nightly')
    """
    folder, _, name = path.rstrip("/").rpartition("/")
    return folder.rpartition("/")[2] if name == "__main__.py" else name
