"""The emitter as one zip for `spark.submit.pyFiles`.

For clusters where nothing can be installed on the driver.

`python -m deploy.pyfiles [FOLDER]` writes strandline-spark-VERSION-pyfiles.zip and prints its path.
It holds the emitter, the pure-Python parts of what it needs as they are installed here, and a
`sitecustomize` that switches it on. The same packages give the same bytes.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "spark_integration" / "strandline_spark"
COMPILED = {"crc32c"}  # nothing but machine code, which no zip can hold: kafka-python does without
LEFT_OUT = (
    ".so",
    ".pyd",
    ".pyi",
    ".pyc",
    ".typed",
    "/RECORD",
    "/INSTALLER",
    "/REQUESTED",
    "/direct_url.json",
)
SITECUSTOMIZE = '''"""Switches the emitter on, then runs the environment's own sitecustomize."""

import importlib.machinery
import importlib.util
import os
import sys

import strandline_spark._boot

strandline_spark._boot.install()
_path = [place for place in sys.path if place != os.path.dirname(__file__)]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _path)
if _spec is not None and _spec.loader is not None:
    _spec.loader.exec_module(importlib.util.module_from_spec(_spec))
'''


def build(folder: Path) -> Path:
    """Write the zip into a folder and give its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"strandline-spark-{metadata.version('strandline-spark')}-pyfiles.zip"
    contents = {"sitecustomize.py": SITECUSTOMIZE.encode(), **own_files()}
    for distribution in needed("strandline-spark"):
        contents |= files_of(distribution)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            archive.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), contents[name], zipfile.ZIP_DEFLATED
            )
    return file


def own_files() -> dict[str, bytes]:
    """Return the emitter's files from the tree, also those in folders that are symbolic links."""
    contents = {}
    for folder, _, names in os.walk(PACKAGE, followlinks=True):
        for name in names:
            if name.endswith((".py", ".java")):  # what the driver compiles goes with it
                file = Path(folder, name)
                contents[str(file.relative_to(PACKAGE.parent))] = file.read_bytes()
    return contents


def needed(name: str) -> list[str]:
    """Return the distributions that one needs, and those that they need.

    Without itself, and without those that are compiled.
    """
    imports: list[str] = []
    waiting = [name]
    while waiting:
        for requirement in requirements_of(waiting.pop()):
            if requirement not in imports and requirement not in COMPILED:
                imports.append(requirement)
                waiting.append(requirement)
    return imports


def requirements_of(name: str) -> Iterator[str]:
    """Yield the requirements of a distribution without extras; ours with its Kafka transport."""
    extra = "kafka" if name == "strandline-spark" else ""
    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement.name.lower()


def files_of(name: str) -> dict[str, bytes]:
    """Return the files of a distribution for the zip, without its commands and licences."""
    files = metadata.files(name) or []
    return {str(file): file.read_binary() for file in files if is_wanted(str(file))}


def is_wanted(name: str) -> bool:
    """Return true if a file of a distribution goes into the zip."""
    return not (
        name.startswith("..")
        or "__pycache__" in name
        or "/licenses/" in name
        or name.endswith(LEFT_OUT)
    )


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
