"""The locks: complete, hashed, in step with each other, and free of any registry's address."""

import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).resolve().parents[2] / "locks"
PIN = re.compile(r"^([a-z0-9._-]+)(?:\[[a-z0-9,_-]+\])?==(\S+)", re.MULTILINE)


def pins(name: str) -> set[tuple[str, str]]:
    """(name, version) of each pinned package; one may have several, for several Pythons or systems."""
    return set(PIN.findall((LOCKS / name).read_text()))


@pytest.mark.parametrize(
    "name", ["build.txt", "run.txt", "demo.txt", "dev.txt", "image.txt", "docs.txt", "audit.txt", "datahub.txt"]
)
def test_every_pin_has_a_hash(name: str) -> None:
    blocks = re.split(r"^(?=\S)", (LOCKS / name).read_text(), flags=re.MULTILINE)
    without = [block.split()[0] for block in blocks if PIN.match(block) and "--hash=sha256:" not in block]

    assert without == []


@pytest.mark.parametrize(
    "name", ["build.txt", "run.txt", "demo.txt", "dev.txt", "image.txt", "docs.txt", "audit.txt", "datahub.txt"]
)
def test_a_lock_names_no_registry(name: str) -> None:
    assert re.findall(r"https?://\S+|--(?:extra-)?index-url|--find-links", (LOCKS / name).read_text()) == []


def test_demo_and_suite_share_one_environment() -> None:
    assert pins("build.txt") <= pins("demo.txt")
    assert pins("demo.txt") <= pins("dev.txt")
    assert ("pyspark", "4.1.4") in pins("demo.txt")
