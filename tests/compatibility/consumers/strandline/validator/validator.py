"""Sends the events of OpenLineage's consumer scenarios to a Strandline and compares what it answers with what is expected.

It needs a server and nothing else: `python validator.py --url http://127.0.0.1:5000 --scenarios DIR --own DIR --target FILE`.
The report has the form of OpenLineage's compatibility tests; the exit code is 1 where a test fails.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

VERSION = "2-0-2"


def send(url: str, scenario: Path) -> Iterator[str]:
    """Send the events of a scenario in the order of their files; what was refused."""
    for file in sorted((scenario / "events").glob("*.json")):
        request = Request(
            f"{url}/api/v1/lineage", file.read_bytes(), {"Content-Type": "application/json"}
        )
        try:
            urlopen(request, timeout=60).close()
        except HTTPError as error:
            yield f"{file.name}: {error.code} {error.read().decode(errors='replace')}"


def answer_of(url: str, path: str) -> Any:
    """Return the server's answer to a GET."""
    try:
        with urlopen(f"{url}{path}", timeout=60) as answer:
            return json.load(answer)
    except HTTPError as error:
        return {"status": error.code, "problem": error.read().decode(errors="replace")}


def differences(expected: Any, found: Any, path: str = "$") -> Iterator[str]:
    """Yield the places where an answer lacks something expected.

    It may say more; of a list, every expected element has to be some found one.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from differences(value, found[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: missing"
    elif isinstance(expected, list) and isinstance(found, list):
        for place, value in enumerate(expected):
            if not any(not list(differences(value, one)) for one in found):
                yield f"{path}[{place}]: none of {len(found)} is like {json.dumps(value)}"
    elif expected != found:
        yield f"{path}: expected {json.dumps(expected)}, found {json.dumps(found)[:500]}"


def run_test(url: str, folder: Path, test: dict[str, Any]) -> dict[str, Any]:
    """One test of a scenario, as the report shows it."""
    details = []
    for check in json.loads((folder / test["path"]).read_text()):
        found = differences(check["expect"], answer_of(url, check["request"]))
        details += [f"{check['request']}: {difference}" for difference in found]
    return {
        "name": test["name"],
        "status": "FAILURE" if details else "SUCCESS",
        "validation_type": "semantics",
        "entity_type": test["entity"],
        "details": details,
        "tags": test["tags"],
    }


def run_scenario(url: str, events: Path, own: Path) -> dict[str, Any]:
    """One scenario, as the report shows it."""
    refused = list(send(url, events))
    tests = [
        run_test(url, own, test) for test in json.loads((own / "config.json").read_text())["tests"]
    ]
    if refused:
        sent = {
            "name": "events",
            "status": "FAILURE",
            "validation_type": "syntax",
            "entity_type": "openlineage",
        }
        tests.insert(0, sent | {"details": refused, "tags": {}})
    failed = any(test["status"] != "SUCCESS" for test in tests)
    return {"name": own.name, "status": "FAILURE" if failed else "SUCCESS", "tests": tests}


def report(url: str, scenarios: Path, own: Path) -> list[dict[str, Any]]:
    """Return the report over all scenarios that this consumer has expectations of."""
    component = str(answer_of(url, "/openapi.json")["info"]["version"])
    found = [
        run_scenario(url, scenarios / folder.name, folder)
        for folder in sorted(own.iterdir())
        if folder.is_dir()
    ]
    return [
        {
            "name": "strandline",
            "component_type": "consumer",
            "component_version": component,
            "openlineage_version": VERSION,
            "scenarios": found,
        }
    ]


def main(argv: list[str] | None = None) -> int:
    """Run everything and write the report."""
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:5000", help="where Strandline listens")
    parser.add_argument(
        "--scenarios",
        type=Path,
        default=here.parent.parent / "scenarios",
        help="the shared scenarios",
    )
    parser.add_argument(
        "--own", type=Path, default=here / "scenarios", help="what is expected of them"
    )
    parser.add_argument(
        "--target", type=Path, help="the file for the report; without it standard output"
    )
    given = parser.parse_args(argv)
    found = report(given.url, given.scenarios, given.own)
    text = json.dumps(found, indent=2)
    if given.target is None:
        sys.stdout.write(f"{text}\n")
    else:
        given.target.write_text(text)
    return int(
        any(scenario["status"] != "SUCCESS" for one in found for scenario in one["scenarios"])
    )


if __name__ == "__main__":
    sys.exit(main())
