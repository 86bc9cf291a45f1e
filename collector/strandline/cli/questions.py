"""Options, sources and output formats that the commands about lineage share."""

import sys
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from strandline.cli.answers import warn, write_text
from strandline.cli.lineage_text import not_shown
from strandline.core.exports.graphs import WRITERS
from strandline.core.exports.lists import list_csv

Json = dict[str, Any]


def asked_of(options: Namespace, names: Iterable[str]) -> Json:
    """Return the parameters of what the options ask for; --format json is --json."""
    options.json = options.json or options.format == "json"
    options_ = vars(options)
    parameters = {name: options_.get(name) for name in names}
    return parameters | ({"asOf": options.as_of} if "as_of" in options_ else {})


def print_export(answer: Json, path: str, name: str) -> int:
    """Print the answer of a path in a format other than JSON; stderr names what it leaves out."""
    text = WRITERS[name][1](answer) if "edges" in answer else list_csv(path, answer["items"])
    write_text(text)
    if not answer["complete"]:
        print(
            f"strandline: the answer is cut by {answer['truncatedBy'] or '--limit'}",
            file=sys.stderr,
        )
    for line in not_shown(answer):
        warn(line.strip("()"))
    return 0
