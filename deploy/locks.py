"""`python -m deploy.locks`.

Check that the locks are complete, hashed, in step, and free of any registry's address.

Prints each fault in a line of its own and exits with 1, or prints nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LOCKS = Path(__file__).resolve().parent.parent / "locks"
PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[a-z0-9,_-]+\])?==([^\s;]+)", re.MULTILINE)
ADDRESS = re.compile(r"https?://\S+|--(?:extra-)?index-url|--find-links")
# The first of two locks holds no pin that the second lacks: they are installed into one
# environment, one after the other.
NESTED = (("build.txt", "demo.txt"), ("demo.txt", "dev.txt"))


def faults(folder: Path) -> Iterator[str]:
    """Yield the faults of all locks in a folder."""
    for lock in sorted(folder.glob("*.txt")):
        text = lock.read_text()
        for block in re.split(r"^(?=[^\s#])", text, flags=re.MULTILINE):
            if PIN.match(block) and "--hash=sha256:" not in block:
                yield f"{lock.name}: {block.split()[0]} has no hash"
        for address in ADDRESS.findall(text):
            yield f"{lock.name} names a registry: {address}"
    for inner, outer in NESTED:
        for name, version in sorted(pins(folder / inner) - pins(folder / outer)):
            yield f"{inner}: {name}=={version} is not in {outer}"


def pins(lock: Path) -> set[tuple[str, str]]:
    """Return (name, version) of each pin.

    A package may have several, for several Pythons or systems.
    """
    return set(PIN.findall(lock.read_text()))


if __name__ == "__main__":
    problems = list(faults(LOCKS))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))
