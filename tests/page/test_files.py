"""The page's files are complete, unmodified copies where bundled, and small."""

import gzip
import hashlib
import json
import re
from importlib.resources.abc import Traversable

import httpx
import pytest

from strandline.web.pages import ASSETS, PAGES

VENDOR = ASSETS / "vendor"


def test_bundled_libraries_equal_their_packages() -> None:
    listed = json.loads((VENDOR / "vendored.json").read_text())["files"]
    found = {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest()
        for one in VENDOR.iterdir()
        if one.name.endswith(".mjs")
    }

    assert {one["file"]: one["sha256"] for one in listed} == found
    assert all(one["licence"] and one["version"] and one["why"] for one in listed)


def test_the_page_weighs_less_than_300_kilobytes_compressed() -> None:
    def weight(folder: Traversable) -> int:
        return sum(
            len(gzip.compress(one.read_bytes())) if one.is_file() else weight(one)
            for one in folder.iterdir()
        )

    assert weight(ASSETS) < 300_000


def own_scripts() -> list[Traversable]:
    """Return the page's own scripts."""
    return [
        one
        for folder in ("js", "js/pages", "js/graph")
        for one in (ASSETS / folder).iterdir()
        if one.is_file()
    ]


def test_every_word_that_is_linked_is_in_the_glossary() -> None:
    texts = [script.read_text() for script in own_scripts()]
    linked = {
        word
        for text in texts
        for found in re.findall(r'<\$\{Word\}\s+of="([^"]+)"|wordHead\("([^"]+)"', text)
        for word in found
        if word
    }
    meanings = (ASSETS / "js" / "pages" / "words.js").read_text()

    assert "barrier" in linked
    assert linked <= set(re.findall(r'\["([a-z-]+)",', meanings.replace("\n    ", "")))


def test_no_file_evaluates_text_or_writes_markup() -> None:
    wrong = [
        one.name
        for one in own_scripts()
        if re.search(
            r"\beval\(|new Function|innerHTML|insertAdjacentHTML|document\.write", one.read_text()
        )
    ]

    assert wrong == []


@pytest.mark.parametrize("path", PAGES)
def test_every_address_of_the_page_has_a_strict_policy(address: str, path: str) -> None:
    policy = httpx.get(address + path).headers["content-security-policy"]

    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    "path", ["../pages.py", "..%2fpages.py", "vendor", "", "js/", "vendor//htm.mjs", "%00"]
)
def test_only_page_files_are_served(address: str, path: str) -> None:
    assert httpx.get(f"{address}/ui/{path}").status_code in (400, 404)


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def test_unknown_address_gives_browsers_the_page_and_programs_a_problem(address: str) -> None:
    opened = httpx.get(f"{address}/nothing", headers=BROWSER)
    asked = httpx.get(f"{address}/nothing")
    of_api = httpx.get(f"{address}/api/v2/nothing", headers=BROWSER)

    assert opened.status_code == asked.status_code == of_api.status_code == 404
    assert opened.text == httpx.get(address).text
    assert "default-src 'none'" in opened.headers["content-security-policy"]
    assert asked.json()["code"] == of_api.json()["code"] == "not_found"


def test_unchanged_file_is_not_sent_again(address: str) -> None:
    first = httpx.get(f"{address}/ui/style.css")

    again = httpx.get(f"{address}/ui/style.css", headers={"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content) == (304, b"")
