"""README.md and docs/: commands print what the pages show, and everything named exists."""

import argparse
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from sqlalchemy import Engine

from fixtures.operations import operations
from strandline.cli import main, parser_of
from strandline.cli.declarations import COMMANDS
from strandline.settings import KAFKA_SECURITY, PREFIX, declared
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUESTIONS = (ROOT / "docs/reference/questions.md").read_text()
SHOWN = re.findall(r"^```\n\$ (strandline .*)\n((?s:.*?))^```$", QUESTIONS, re.MULTILINE)
ELSEWHERE = ("STRANDLINE_BANK_", "STRANDLINE_CACHE_DIR")  # of the benchmarks and of deploy/
NOW = r" to 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d$"


@pytest.mark.parametrize(("line", "printed"), SHOWN, ids=[line for line, _ in SHOWN])
def test_documented_command_prints_the_documented_answer(
    line: str,
    printed: str,
    sqlite_url: str,
    sqlite_engine: Engine,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The current time is masked."""
    fill(sqlite_engine, bank())

    main(shlex.split(line)[1:], {"STRANDLINE_DATABASE_URL": sqlite_url})

    out = capsys.readouterr().out
    assert re.sub(NOW, "", out, flags=re.MULTILINE) == re.sub(NOW, "", printed, flags=re.MULTILINE)


def test_the_page_of_questions_shows_answers() -> None:
    assert len(SHOWN) >= 6


def code_of(text: str) -> Iterator[str]:
    """Yield the code in backticks, and each line of a block without its comment."""
    yield from re.findall(r"`([^`\n]+)`", text)
    for block in re.findall(r"^```\w*\n((?s:.*?))^```", text, re.MULTILINE):
        yield from (
            line.partition("#")[0].strip().removeprefix("$ ") for line in block.splitlines()
        )


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    found = {option for action in parser._actions for option in action.option_strings}
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return found.union(*(options_of(one) for action in inner for one in action.choices.values()))


def unknown_commands(text: str) -> Iterator[str]:
    """Commands and options that nobody knows."""
    for code in code_of(text):
        for command, rest in re.findall(
            r"(?:^|[;|&(] *|exec |run )strandline ([a-z-]+)([^|`]*)", code
        ):
            if command not in COMMANDS:
                yield code
                continue
            options = options_of(parser_of(COMMANDS[command]))
            yield from (
                f"{code}: {one}"
                for one in re.findall(r"(?<![\w-])--[a-z][a-z-]+", rest)
                if one not in options
            )


def unknown_settings(text: str) -> Iterator[str]:
    """Variables that are no setting, nor the beginning of one's name."""
    names = [name for name, _ in declared()] + [f"kafka_{name}" for name in KAFKA_SECURITY]
    known = [f"{PREFIX}{name.upper()}" for name in names]
    for name in re.findall(r"STRANDLINE_[A-Z][A-Z_]+[A-Z]", text):
        if not name.startswith(ELSEWHERE) and not any(one.startswith(name) for one in known):
            yield name


def unknown_paths(text: str) -> Iterator[str]:
    """Paths, methods and parameters that the API does not have."""
    for method, path, query in re.findall(r"(GET|POST|PUT|DELETE) (/[\w/.{}-]+)(\?[^`\s]*)?", text):
        plain = re.sub(r"\{\w+\}|\b[A-Z]+\b", "{}", path)
        same = [
            one
            for one in operations()
            if re.fullmatch(re.sub(r"\{\w+\}", r"[^/]+", one.path), plain)
        ]
        taken = {
            one.name for found in same if found.method == method for one in found.parameters
        } | {"format"}
        if method not in {one.method for one in same}:
            yield f"{method} {path}"
        yield from (
            f"{path}?{name}"
            for name, _ in parse_qsl(query[1:], keep_blank_values=True)
            if name not in taken
        )


def broken_links(page: Path) -> Iterator[str]:
    """Links to files and headings that are not there."""
    text = page.read_text()
    for link in re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(
        r'(?:src|srcset|href)="([^"]+)"', text
    ):
        target, _, heading = link.partition("#")
        file = page.parent / target if target else page
        if "://" in link:
            continue
        if not file.exists() or (heading and heading not in headings_of(file)):
            yield link


def headings_of(page: Path) -> set[str]:
    """Return the headings of a page as links have them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("unknown", [unknown_commands, unknown_settings, unknown_paths])
def test_everything_that_the_pages_name_exists(unknown: Callable[[str], Iterator[str]]) -> None:
    found = {page.name: [*unknown(page.read_text())] for page in PAGES}

    assert {page: names for page, names in found.items() if names} == {}


def test_links_of_the_pages_work() -> None:
    found = {page.name: [*broken_links(page)] for page in PAGES}

    assert {page: links for page, links in found.items() if links} == {}


@pytest.mark.parametrize(
    ("unknown", "text"),
    [
        (unknown_commands, "`strandline lineages x`"),
        (unknown_commands, "```\n$ strandline lineage x --dept 1\n```"),
        (unknown_settings, "`STRANDLINE_PORTS`"),
        (unknown_paths, "`GET /api/v2/lineages`"),
        (unknown_paths, "`DELETE /api/v2/lineage`"),
        (unknown_paths, "`GET /api/v2/lineage?nodes=a`"),
    ],
)
def test_unknown_names_in_pages_are_found(
    unknown: Callable[[str], Iterator[str]], text: str
) -> None:
    assert len([*unknown(text)]) == 1
