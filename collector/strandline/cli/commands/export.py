"""`strandline export --to TARGET [PLACE]`.

Everything that the store holds, at once, to a catalog or into a file.
"""

import sys
import time
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from strandline.cli.answers import tell, warn
from strandline.cli.open_store import existing_store
from strandline.errors import SettingsError
from strandline.exporters.datahub.target import DataHub, FileEmitter
from strandline.exporters.registry import rules_of, target_called
from strandline.exporters.target import ExportTarget, Item
from strandline.exporters.whole_store import export_all
from strandline.setting_parsers import event_address, web_address
from strandline.settings import Settings, missing_setting

SCHEMES = ("http://", "https://", "kafka://", "file://")


def run(options: Namespace, settings: Settings) -> int:
    """Export, and say how much that was; 1 if anything was refused."""
    refused: list[str] = []
    target, file = _target(options, settings)
    engine = existing_store(settings)
    try:
        dry = show_item if options.dry_run else None
        count = export_all(engine, target, time.time(), refused.append, dry)
        if not options.dry_run:
            target.close()
    finally:
        engine.dispose()
    if options.dry_run and isinstance(target, DataHub):
        for urn, names in sorted(target.merged().items()):
            print(f"strandline: {urn} would merge {', '.join(names)}", file=sys.stderr)
    if file is not None and not options.dry_run:
        beside(file).touch()
        beside(file).replace(file)
    for line in refused:
        warn(f"rejected: {line}")
    if not options.dry_run:
        answer = {"exported": count - len(refused), "rejected": refused}
        tell(
            answer,
            lambda: [f"{count - len(refused)} items exported to {options.to}"],
            as_json=options.json,
        )
    return 1 if refused else 0


def _target(options: Namespace, settings: Settings) -> tuple[ExportTarget, Path | None]:
    """Return the target, and the file that its events become.

    The file is written beside its place, and put there at the end.
    """
    name = "openlineage" if options.to == "file" else options.to
    place = options.place
    file = Path(place) if place is not None and not place.startswith(SCHEMES) else None
    if file is not None and name == "datahub":
        return DataHub(FileEmitter(file), rules_of(settings)), None
    if file is not None and name != "openlineage":
        raise SettingsError([f"{place} is not an address of {name}: http://host:port"])
    if file is not None:
        beside(file).unlink(missing_ok=True)
        place = beside(file).absolute().as_uri()
    if options.to == "file" and place is None:
        raise SettingsError(["no file is named: strandline export --to file FILE"])
    if place is None and getattr(settings, f"{name}_url") is None:
        raise missing_setting(
            f"{name}_url",
            f"set it, or name the address: strandline export --to {name} http://host:port",
        )
    if place is not None:
        address: dict[str, Any] = {f"{name}_url": _address(name, place)}
        settings = replace(settings, **address)
    return target_called(name, settings), file


def _address(name: str, place: str) -> str:
    try:
        return event_address(place) if name.startswith("open") else web_address(place)
    except ValueError as error:
        raise SettingsError([f"{place} {error}"]) from None


def beside(file: Path) -> Path:
    """Return where a file is written until it is whole."""
    return file.with_name(f"{file.name}.new")


def show_item(item: Item) -> None:
    """Print what an item is made of, a message a line."""
    for line in item.content:
        print(orjson.dumps(line, default=_text).decode())


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
