"""The emitter's settings, read once from Spark conf and environment into one frozen object.

`spark.openlineage.*` keys keep the meaning that the OpenLineage Spark listener gives them;
`spark.strandline.*` are ours. A value that cannot be used is replaced by its default and named in
`faults`: a wrong setting never stops a job.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strandline_spark.application_name import application_name
from strandline_spark.collector_key import collector_key
from strandline_spark.flags import ON

_OPENLINEAGE = "spark.openlineage."
_STRANDLINE = "spark.strandline."
JOB_NAME = f"{_STRANDLINE}job.name"  # may be another for each session and statement
# what it matches is cut from the application's name: a date, a UUID
REMOVE_PATTERN = f"{_STRANDLINE}job.removePattern"
# a batch job asserts that its tables show the state of its inputs; likewise for each statement
COMPLETES = f"{_STRANDLINE}completes"
_TRANSPORT = _OPENLINEAGE + "transport."
_FACET_OFF = re.compile(r"spark\.openlineage\.facets\.(.+)\.disabled")
_TRUE = ON  # what switches something on, everywhere


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that started this application, and the run above all, as a scheduler tells them."""

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Conf:
    """Every setting of the emitter, with its default."""

    app_name: str
    app_id: str = ""
    spark_version: str = ""
    enabled: bool = False
    disabled: bool = False
    namespace: str = "default"
    parent: Parent | None = None
    root: Parent | None = None
    transport: Mapping[str, str] = field(default_factory=dict)
    job_name: str = "{app}.{output}"
    reads: bool = False
    group: str | None = None
    completes: bool = False
    heartbeat_seconds: float = 60.0
    spool_dir: Path = Path()
    spool_bytes: int = 256 * 1024 * 1024
    queue_size: int = 1000
    event_bytes: int = 900_000
    recover_batches: int = 10
    listeners: tuple[str, ...] = ()
    listener_conf: Mapping[str, str] = field(default_factory=dict)
    facets_off: frozenset[str] = frozenset()
    captured: Mapping[str, str] = field(
        default_factory=dict
    )  # properties of Spark that events tell
    column_limit: int | None = None  # outputs with more columns are reported without column lineage
    dataset_lineage: bool = (
        True  # filters and joins once for the whole output, not with each of its columns
    )
    remove_path: str | None = None
    stock_listener: bool = False
    faults: tuple[str, ...] = ()


def conf_of(entries: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Conf:
    """Return the settings that Spark conf `entries` and the environment give.

    >>> conf_of({"spark.app.name": "bank", "spark.strandline.heartbeat.seconds": "soon"}, {}).faults
    ("spark.strandline.heartbeat.seconds: 'soon' is not a number: 60 is used",)
    """
    environ = os.environ if environ is None else environ
    faults: list[str] = []
    parent = _parent(entries, "parent", faults)
    return Conf(
        app_name=_app_name(entries, environ, faults),
        app_id=entries.get("spark.app.id", ""),
        enabled=is_on(entries.get(_STRANDLINE + "enabled")),
        disabled=is_on(environ.get("OPENLINEAGE_DISABLED"))
        or is_on(entries.get(_OPENLINEAGE + "disabled")),
        namespace=entries.get(_OPENLINEAGE + "namespace") or "default",
        parent=parent,
        root=_parent(entries, "rootParent", faults) or parent,
        transport=_transport(entries, environ, faults),
        job_name=entries.get(JOB_NAME) or "{app}.{output}",
        reads=is_on(entries.get(_STRANDLINE + "reads")),
        group=entries.get(_STRANDLINE + "group") or None,
        completes=is_on(entries.get(COMPLETES)),
        heartbeat_seconds=_number(entries, "heartbeat.seconds", 60, faults),
        spool_dir=_spool_dir(entries, environ),
        spool_bytes=int(_number(entries, "spool.bytes", 256 * 1024 * 1024, faults)),
        queue_size=int(_number(entries, "queue.size", 1000, faults)),
        event_bytes=int(_number(entries, "event.bytes", 900_000, faults)),
        recover_batches=int(_number(entries, "recover.batches", 10, faults)),
        listeners=_names(entries.get(_STRANDLINE + "listeners", "")),
        listener_conf=dict(entries) if entries.get(_STRANDLINE + "listeners") else {},
        facets_off=_facets_off(entries),
        captured=_captured(entries),
        column_limit=_column_limit(entries, faults),
        dataset_lineage=is_on(
            entries.get(_OPENLINEAGE + "columnLineage.datasetLineageEnabled", "true")
        ),
        remove_path=_pattern(entries, _OPENLINEAGE + "dataset.removePath.pattern", faults),
        stock_listener="io.openlineage.spark" in entries.get("spark.extraListeners", ""),
        faults=tuple(faults),
    )


def is_on(value: str | None) -> bool:
    """Return whether a setting's value switches it on."""
    return (value or "").strip().lower() in _TRUE


def _names(value: str) -> tuple[str, ...]:
    return tuple(
        name.strip() for name in value.strip("[]").replace(";", ",").split(",") if name.strip()
    )


def _number(entries: Mapping[str, str], key: str, default: int, faults: list[str]) -> float:
    value = entries.get(_STRANDLINE + key)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        faults.append(f"{_STRANDLINE}{key}: {value!r} is not a number: {default} is used")
        return default
    if not 0 < number < float("inf"):
        faults.append(f"{_STRANDLINE}{key}: {value} is not above 0: {default} is used")
        return default
    return number


def _captured(entries: Mapping[str, str]) -> Mapping[str, str]:
    names = _names(entries.get(_OPENLINEAGE + "capturedProperties", "spark.master,spark.app.name"))
    return {name: entries[name] for name in names if name in entries}


def _column_limit(entries: Mapping[str, str], faults: list[str]) -> int | None:
    value = entries.get(_OPENLINEAGE + "columnLineage.schemaSizeLimit")
    if value is None or value.isdigit():
        return int(value) if value else None
    faults.append(
        f"{_OPENLINEAGE}columnLineage.schemaSizeLimit: {value!r} is not a number: there is no limit"
    )
    return None


def _pattern(entries: Mapping[str, str], key: str, faults: list[str]) -> str | None:
    """Return a Java pattern as Python's: named groups are `(?<remove>...)` there."""
    value = entries.get(key)
    if not value:
        return None
    pattern = re.sub(r"\(\?<(?![=!])", "(?P<", value)
    try:
        re.compile(pattern)
    except re.error as error:
        faults.append(f"{key}: {error}: it is not used")
        return None
    return pattern


def _app_name(entries: Mapping[str, str], environ: Mapping[str, str], faults: list[str]) -> str:
    """Return the application's part of the names of its jobs.

    `spark.openlineage.appName` counts as it stands. Of another name, what
    `spark.strandline.job.removePattern` matches is cut, unless nothing would be left.
    """
    pattern = _pattern(entries, REMOVE_PATTERN, faults)
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    name, warning = application_name(entries, environ, script)
    if warning is not None:
        faults.append(warning)
    if pattern is None or entries.get(_OPENLINEAGE + "appName"):
        return name
    return re.sub(pattern, "", name) or name


def _parent(entries: Mapping[str, str], prefix: str, faults: list[str]) -> Parent | None:
    namespace, name, run_id = (
        entries.get(f"{_OPENLINEAGE}{prefix}{part}")
        for part in ("JobNamespace", "JobName", "RunId")
    )
    if not (name and run_id):
        return None
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", run_id):
        faults.append(
            f"{_OPENLINEAGE}{prefix}RunId: {run_id!r} is not a UUID: the parent is not reported"
        )
        return None
    return Parent(namespace or entries.get(_OPENLINEAGE + "namespace") or "default", name, run_id)


def _transport(
    entries: Mapping[str, str], environ: Mapping[str, str], faults: list[str]
) -> Mapping[str, str]:
    found = {
        key[len(_TRANSPORT) :]: value
        for key, value in entries.items()
        if key.startswith(_TRANSPORT)
    }
    url = entries.get(_STRANDLINE + "collector.url")
    if found.get("type", "http") == "http" and url and found.get("url", url) == url:
        named = {
            "auth.apiKey",
            "auth.api_key",
        } & found.keys()  # the collector's key where the transport has none
        key = None if named else collector_key(entries.get, environ, faults)
        found = {"url": url, **({"auth.apiKey": key} if key else {}), **found}
    return {"type": "http", **found} if "url" in found else found


def _spool_dir(entries: Mapping[str, str], environ: Mapping[str, str]) -> Path:
    if given := entries.get(_STRANDLINE + "spool.dir"):
        return Path(given) if not given.startswith("~/") else _home(environ) / given[2:]
    state = environ.get("XDG_STATE_HOME") or _home(environ) / ".local" / "state"
    return Path(state) / "strandline" / "spool"


def _home(environ: Mapping[str, str]) -> Path:
    """Return the user's folder; one below the temporary directory if there is no such user."""
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"strandline-{os.getuid()}"


def _facets_off(entries: Mapping[str, str]) -> frozenset[str]:
    single = {
        found[1]
        for key, value in entries.items()
        if (found := _FACET_OFF.fullmatch(key)) and is_on(value)
    }
    return frozenset(single | set(_names(entries.get(_OPENLINEAGE + "facets.disabled", ""))))
