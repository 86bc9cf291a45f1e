"""The emitter's settings, read once from Spark conf and environment into one frozen object.

`conf_keys` declares the keys. A value that cannot be used is replaced by its default and named in
`faults`: a wrong setting never stops a job.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline_spark import conf_keys as keys
from strandline_spark.application_name import application_name
from strandline_spark.collector_key import collector_key
from strandline_spark.conf_keys import ConfKey
from strandline_spark.flags import ON

_TRANSPORT = keys.TRANSPORT_TYPE.removesuffix("type")
_FACET_OFF = re.compile(re.escape(keys.FACET_DISABLED).replace("NAME", "(.+)"))


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that started this application, and the run above all, as a scheduler tells them."""

    namespace: str
    name: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Conf:
    """Every setting of the emitter; `conf_keys` says what each means."""

    app_name: str
    app_id: str
    enabled: bool
    disabled: bool
    namespace: str
    parent: Parent | None
    root: Parent | None
    transport: Mapping[str, str]
    job_name: str
    reads: bool
    group: str | None
    completes: bool
    heartbeat_seconds: float
    spool_dir: Path
    spool_bytes: int
    queue_size: int
    event_bytes: int
    recover_batches: int
    listeners: tuple[str, ...]
    listener_conf: Mapping[str, str]
    facets_off: frozenset[str]
    captured: Mapping[str, str]
    column_limit: int | None
    dataset_lineage: bool
    remove_path: str | None
    stock_listener: bool
    faults: tuple[str, ...]
    spark_version: str = ""


def conf_of(entries: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Conf:
    """Return the settings that Spark conf `entries` and the environment give.

    >>> conf_of({"spark.app.name": "bank", "spark.strandline.heartbeat.seconds": "soon"}, {}).faults
    ("spark.strandline.heartbeat.seconds: 'soon' is not a number: 60 is used",)
    """
    environ = os.environ if environ is None else environ
    faults: list[str] = []
    parent = _parent(entries, keys.PARENT_NAMESPACE, keys.PARENT_NAME, keys.PARENT_RUN_ID, faults)
    return Conf(
        app_name=_app_name(entries, environ, faults),
        app_id=entries.get("spark.app.id", ""),
        enabled=is_on(entries.get(keys.ENABLED)),
        disabled=is_on(environ.get("OPENLINEAGE_DISABLED")) or is_on(entries.get(keys.DISABLED)),
        namespace=_namespace(entries),
        parent=parent,
        root=_parent(entries, keys.ROOT_NAMESPACE, keys.ROOT_NAME, keys.ROOT_RUN_ID, faults)
        or parent,
        transport=_transport(entries, environ, faults),
        job_name=entries.get(keys.JOB_NAME) or keys.JOB_NAME.default,
        reads=is_on(entries.get(keys.READS)),
        group=entries.get(keys.GROUP) or None,
        completes=is_on(entries.get(keys.COMPLETES)),
        heartbeat_seconds=_number(entries, keys.HEARTBEAT_SECONDS, faults),
        spool_dir=_spool_dir(entries, environ),
        spool_bytes=int(_number(entries, keys.SPOOL_BYTES, faults)),
        queue_size=int(_number(entries, keys.QUEUE_SIZE, faults)),
        event_bytes=int(_number(entries, keys.EVENT_BYTES, faults)),
        recover_batches=int(_number(entries, keys.RECOVER_BATCHES, faults)),
        listeners=_names(entries.get(keys.LISTENERS, "")),
        listener_conf=dict(entries) if entries.get(keys.LISTENERS) else {},
        facets_off=_facets_off(entries),
        captured=_captured(entries),
        column_limit=_column_limit(entries, faults),
        dataset_lineage=is_on(
            entries.get(keys.DATASET_LINEAGE_ENABLED, keys.DATASET_LINEAGE_ENABLED.default)
        ),
        remove_path=_pattern(entries, keys.REMOVE_PATH_PATTERN, faults),
        stock_listener="io.openlineage.spark" in entries.get("spark.extraListeners", ""),
        faults=tuple(faults),
    )


def is_on(value: str | None) -> bool:
    """Return whether a setting's value switches it on."""
    return (value or "").strip().lower() in ON


def _names(value: str) -> tuple[str, ...]:
    return tuple(
        name.strip() for name in value.strip("[]").replace(";", ",").split(",") if name.strip()
    )


def _number(entries: Mapping[str, str], key: ConfKey, faults: list[str]) -> float:
    value = entries.get(key)
    default = float(key.default)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        faults.append(f"{key}: {value!r} is not a number: {key.default} is used")
        return default
    if not 0 < number < float("inf"):
        faults.append(f"{key}: {value} is not above 0: {key.default} is used")
        return default
    return number


def _captured(entries: Mapping[str, str]) -> Mapping[str, str]:
    names = _names(entries.get(keys.CAPTURED_PROPERTIES, keys.CAPTURED_PROPERTIES.default))
    return {name: entries[name] for name in names if name in entries}


def _column_limit(entries: Mapping[str, str], faults: list[str]) -> int | None:
    value = entries.get(keys.SCHEMA_SIZE_LIMIT)
    if value is None or value.isdigit():
        return int(value) if value else None
    faults.append(f"{keys.SCHEMA_SIZE_LIMIT}: {value!r} is not a number: there is no limit")
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
    pattern = _pattern(entries, keys.REMOVE_PATTERN, faults)
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    name, warning = application_name(entries, environ, script)
    if warning is not None:
        faults.append(warning)
    if pattern is None or entries.get(keys.APP_NAME):
        return name
    return re.sub(pattern, "", name) or name


def _namespace(entries: Mapping[str, str]) -> str:
    return entries.get(keys.NAMESPACE) or keys.NAMESPACE.default


def _parent(
    entries: Mapping[str, str],
    namespace_key: str,
    name_key: str,
    run_key: str,
    faults: list[str],
) -> Parent | None:
    name, run_id = entries.get(name_key), entries.get(run_key)
    if not (name and run_id):
        return None
    if not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", run_id):
        faults.append(f"{run_key}: {run_id!r} is not a UUID: the parent is not reported")
        return None
    return Parent(entries.get(namespace_key) or _namespace(entries), name, run_id)


def _transport(
    entries: Mapping[str, str], environ: Mapping[str, str], faults: list[str]
) -> Mapping[str, str]:
    settings = {
        key[len(_TRANSPORT) :]: value
        for key, value in entries.items()
        if key.startswith(_TRANSPORT)
    }
    url = entries.get(keys.COLLECTOR_URL)
    if settings.get("type", "http") == "http" and url and settings.get("url", url) == url:
        named = {
            "auth.apiKey",
            "auth.api_key",
        } & settings.keys()  # the collector's key where the transport has none
        key = None if named else collector_key(entries.get, environ, faults)
        settings = {"url": url, **({"auth.apiKey": key} if key else {}), **settings}
    return {"type": "http", **settings} if "url" in settings else settings


def _spool_dir(entries: Mapping[str, str], environ: Mapping[str, str]) -> Path:
    if folder := entries.get(keys.SPOOL_DIR):
        return Path(folder) if not folder.startswith("~/") else _home(environ) / folder[2:]
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
        match[1]
        for key, value in entries.items()
        if (match := _FACET_OFF.fullmatch(key)) and is_on(value)
    }
    return frozenset(single | set(_names(entries.get(keys.FACETS_DISABLED, ""))))
