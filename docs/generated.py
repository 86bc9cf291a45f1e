"""The parts of the reference that are made from the program.

`python -m docs.generated` prints the long ones as Markdown in one JSON object; docs/site_hooks.py
puts each where a page of docs/reference has `<!-- generated: NAME -->`. The short ones are kept in
their pages below such a mark, for whoever reads the repository: `make reference` writes them anew.
"""

import argparse
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import strandline_spark
from strandline.api.app import document
from strandline.cli import actions_of, parser_of
from strandline.cli.declarations import GROUPS
from strandline.metrics import Metrics
from strandline.settings import KAFKA_SECURITY, PREFIX, declared
from strandline_spark.conf_keys import declared_keys

Lines = Iterator[str]
REFERENCE = Path(__file__).resolve().parent / "reference"


def commands() -> Lines:
    """Yield the help of every command, in the groups of `strandline --help`."""
    for title, group in GROUPS.items():
        yield f"## {title}\n"
        for command in group:
            yield f"### strandline {command.name}\n"
            parser = parser_of(command)
            for each in (parser, *actions_of(parser)):
                yield f"```text\n{_help_of(each)}\n```\n"


def _help_of(parser: argparse.ArgumentParser) -> str:
    parser.epilog = None
    return parser.format_help().strip()


def rest() -> Lines:
    """Yield every operation of the OpenAPI document, by its tag."""
    tags: dict[str, list[str]] = {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            section = tags.setdefault(operation["tags"][0], [])
            section.extend(_operation(method.upper(), path, operation))
    for tag, lines in tags.items():
        yield f"## {tag.capitalize()}\n"
        yield from lines


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Lines:
    scope = operation["security"][-1].get("key", [])
    key = f"Needs a key with the scope `{scope[0]}`." if scope else "Needs no key."
    yield f"### {method} {path}\n"
    yield f"{operation['summary']} {key}\n"
    if "description" in operation:
        yield f"{operation['description']}\n"
    if operation["parameters"]:
        yield "| parameter | value | default | meaning |\n|---|---|---|---|"
        for parameter in operation["parameters"]:
            yield _row(
                f"`{parameter['name']}`" + (", required" if parameter["required"] else ""),
                _value_of(parameter["schema"]),
                _code(parameter["schema"].get("default")),
                parameter.get("description", ""),
            )
        yield ""


def _value_of(schema: Mapping[str, Any]) -> str:
    """Return the words of a choice, or the type."""
    if "enum" in schema:
        return ", ".join(map(_code, schema["enum"]))
    if "anyOf" in schema:
        return ", ".join(_value_of(each) for each in schema["anyOf"] if each != {"type": "null"})
    if schema.get("type") == "array":
        return f"{_value_of(schema['items'])}, repeatable"
    return str(schema.get("type", ""))


def settings() -> Lines:
    """Yield a row for each setting, and the names of Kafka's own."""
    yield "| setting | default | meaning |\n|---|---|---|"
    for name, declaration in declared():
        variable = f"`{PREFIX}{name.upper()}`"
        yield _row(variable, _code(declaration["default"]), str(declaration["about"]))
    yield "\nKafka's own have the name that kafka-python gives them:\n"
    yield ", ".join(f"`{PREFIX}KAFKA_{name.upper()}`" for name in KAFKA_SECURITY) + "."


def metrics() -> Lines:
    """Yield a row for each metric that is not Python's own."""
    yield "| metric | type | meaning |\n|---|---|---|"
    for collector in Metrics().registry._collector_to_names:
        for family in collector.collect():
            if not family.name.startswith("strandline_"):
                continue
            owner: Any = collector if hasattr(collector, "_labelnames") else family
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = f"{{{', '.join(owner._labelnames)}}}" if owner._labelnames else ""
            yield _row(f"`{name}{labels}`", family.type, family.documentation)


def spark_conf() -> Lines:
    """Yield a row for each key of Spark conf."""
    yield "| key | default | meaning |\n|---|---|---|"
    for key in declared_keys():
        yield _row(f"`{key}`", _code(key.default or None), key.about)


def python() -> Lines:
    """Yield signature and docstring of each public name of `strandline_spark`: functions first."""
    for name in sorted(strandline_spark.__all__, key=lambda name: (name[0].isupper(), name)):
        public = getattr(strandline_spark, name)
        yield f"## {name}\n"
        if inspect.isfunction(public):
            signature = re.sub(r"(: |-> )'([^']+)'", r"\1\2", str(inspect.signature(public)))
            yield f"```python\n{name}{signature}\n```\n"
        yield f"```text\n{inspect.getdoc(public)}\n```\n"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _code(value: object) -> str:
    return "" if value is None else f"`{value}`"


PARTS = {part.__name__: part for part in (commands, rest, python)}
KEPT = {part.__name__: part for part in (settings, metrics, spark_conf)}


def with_part(page: str, name: str) -> str:
    """Return the text of a page with its kept part made anew."""
    mark = f"<!-- generated: {name} -->"
    return f"{page.partition(mark)[0]}{mark}\n\n" + "\n".join(KEPT[name]()) + "\n"


def page_of(name: str) -> Path:
    """Return the page of a kept part."""
    return REFERENCE / f"{name.replace('_', '-')}.md"


def _write_kept() -> None:
    for name in KEPT:
        page = page_of(name)
        page.write_text(with_part(page.read_text(), name))


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"  # of the help texts
    if sys.argv[1:] == ["--write"]:
        _write_kept()
    else:
        json.dump({name: "\n".join(part()) for name, part in PARTS.items()}, sys.stdout)
