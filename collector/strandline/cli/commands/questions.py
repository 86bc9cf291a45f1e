"""`strandline impact`, `paths`, `changes` and `namespaces`.

Asked of the database, or with --url of a running collector. `impact` ends as diff does, so that a
CI job may ask it: 0 nothing depends on it, 1 something does, 2 it could not be answered.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from strandline.cli.answers import counted, print_json, show, show_table, state_word, warn
from strandline.cli.collector import source_of
from strandline.cli.lineage_text import not_shown
from strandline.cli.questions import (
    asked_of,
    print_export,
)
from strandline.core.labels import labels_of, told_apart
from strandline.errors import StrandlineError
from strandline.settings import Settings

Json = dict[str, Any]
Row = Callable[[Json], Sequence[str]]

SELECTED = ("namespace", "kind", "tag", "facet")
NOTHING, SOMETHING, TROUBLE = 0, 1, 2
SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def run_impact(options: Namespace, settings: Settings) -> int:
    """Print what depends on it, and end with 1 if anything does."""
    from strandline.cli import problem_of

    try:
        answer = _ask(
            options, settings, "/impact", ("node", "column", "depth", "limit", "state", *SELECTED)
        )
    except StrandlineError as error:
        warn(problem_of(error))
        return TROUBLE
    _print(options, answer, "/impact", _impact_lines)
    return (
        SOMETHING
        if answer["items"] or not answer["complete"] or answer["hidden"]["filtered"]
        else NOTHING
    )


def _ask(
    options: Namespace, settings: Settings, path: str, names: Sequence[str], **more: Any
) -> Json:
    parameters = asked_of(options, names) | more
    with source_of(options, settings) as source:
        return source.ask(path, parameters)


def _print(options: Namespace, answer: Json, path: str, lines: Callable[[Json], None]) -> None:
    if options.json:
        print_json(answer)
    elif options.format is not None:
        print_export(answer, path, options.format)
    else:
        lines(answer)


def _impact_lines(answer: Json) -> None:
    node = answer["node"]
    labels = labels_of([node, *answer["items"]])
    name = labels[node["id"]]
    after = [_summary(answer), *_read(node), *_cut(answer), *not_shown(answer)]
    if not answer["items"]:
        whole = answer["complete"] and not answer["hidden"]["filtered"]
        nothing = "nothing that is known" if whole else "nothing shown"
        show([f"{nothing} depends on {name}", *after[1:]])
        return
    head = ("KIND", "WHAT", "DEPENDS", "STEPS", "OWNERS", "LAST READ OR RUN", "BY")
    show_table(
        head,
        [_impact_row(item, labels[item["id"]]) for item in answer["items"]],
        [f"{name}: {after[0]}", *after[1:]],
    )


def _summary(answer: Json) -> str:
    affected = {
        kind.replace("dataset", "table"): number
        for kind, number in answer["affected"].items()
        if number
    }
    counts = [f"{number} {kind if number != 1 else kind[:-1]}" for kind, number in affected.items()]
    number = sum(answer["affected"].values())
    return f"{', '.join(counts)} {'depend' if number != 1 else 'depends'} on it"


def _read(node: Json) -> list[str]:
    by = node["lastReadBy"]
    return [f"it was last read {_time(node['lastReadAt'])} by {by['job']}"] if by else []


def _impact_row(entity: Json, name: str) -> Sequence[str]:
    state = state_word(entity["lastRunState"] or "")
    by = entity["lastReadBy"]["job"] if entity["lastReadBy"] else state
    when = _time(entity["lastReadAt"] or entity["lastRunAt"])
    dependency = entity["dependency"] or "as a whole"
    kind = "table" if entity["type"] == "dataset" else entity["type"]
    name += f"  (dropped {_time(entity['droppedAt'])})" if entity.get("droppedAt") else ""
    name += "  (not in its newest schema)" if entity.get("inSchema") is False else ""
    return kind, name, dependency, str(entity["distance"]), ", ".join(entity["owners"]), when, by


def _time(moment: str | None) -> str:
    return (moment or "").replace("T", " ").partition(".")[0].rstrip("Z")


def _cut(answer: Json) -> list[str]:
    if answer["complete"]:
        return []
    number = answer["hidden"].get("nodes", 0)
    are = "is" if number == 1 else "are"
    return [f"(cut by {answer['truncatedBy']}: at least {counted(number, 'node')} {are} not shown)"]


def run_paths(options: Namespace, settings: Settings) -> int:
    """Print the ways; 1 if there is none."""
    ends = {
        "from": options.from_,
        "to": options.to,
        "fromColumn": options.from_column,
        "toColumn": options.to_column,
    }
    names = ("depth", "limit", "state", "granularity", *SELECTED)
    answer = _ask(options, settings, "/lineage/paths", names, **ends)
    _print(options, answer, "/lineage/paths", _path_lines)
    return 0 if answer["shortest"] else 1


def _path_lines(answer: Json) -> None:
    after = [*_cut(answer), *not_shown(answer)]
    if not answer["shortest"]:
        show(["no way is known from there to here", *after])
        return
    nodes = {node["id"]: node for node in (*answer["nodes"], *answer.get("jobs", ()))}
    labels = labels_of(nodes.values())
    called = {id_: _called(node, labels[id_]) for id_, node in nodes.items()}
    shortest = [called[id_] for id_ in answer["shortest"]]
    rest = sorted(name for id_, name in called.items() if id_ not in answer["shortest"])
    others = ["", "also on a way:", *(f"  {name}" for name in rest)] if rest else []
    show([shortest[0], *(f"  -> {name}" for name in shortest[1:]), *others, *after])


def _called(node: Json, label: str) -> str:
    return f"job {label}" if node["type"] == "job" else label


def run_changes(options: Namespace, settings: Settings) -> int:
    """Print what came and went."""
    times = {
        name: value.isoformat() if (value := vars(options)[name]) else None
        for name in ("since", "until")
    }
    names = ("node", "direction", "depth", "granularity", "limit", "state", *SELECTED)
    _print(
        options,
        _ask(options, settings, "/lineage/changes", names, **times),
        "/lineage/changes",
        _change_lines,
    )
    return 0


def _change_lines(answer: Json) -> None:
    labels = answer["labels"].items()
    names = told_apart(
        {id_: f"job {label}" if id_.startswith("job:") else label for id_, label in labels}
    )
    lines = [f"{SIGNS[item['change']]} {_change(item, names)}" for item in answer["items"]]
    span = f"from {_time(answer['since'])} to {_time(answer['until'])}"
    retyped = f"; {answer['changed']} of another type" if answer.get("changed") else ""
    show(
        [
            *lines,
            f"{answer['added']} came and {answer['removed']} went {span}{retyped}",
            *_cut(answer),
            *not_shown(answer, filtered=("change that was filtered", "changes that were filtered")),
        ]
    )


def _change(change: Json, names: Mapping[str, str]) -> str:
    if change["id"]:
        kind = {"dataset": "table ", "column": "column "}.get(change["kind"], "")
        return f"{kind}{names[change['id']]}{_types(change)}"
    how = [
        change["transform"] and f"= {change['transform']}",
        change["dependency"] and f"({change['dependency']})",
        change["job"] and f"by {names[change['job']]}",
    ]
    return " ".join([f"{names[change['source']]} -> {names[change['target']]}", *filter(None, how)])


def _types(change: Json) -> str:
    types = [text for name in ("before", "after") if (text := change.get(name))]
    return f" ({' -> '.join(types)})" if types else ""


def run_namespaces(options: Namespace, settings: Settings) -> int:
    """Print the namespaces, and which of them feed which."""
    _print(
        options, _ask(options, settings, "/namespaces", ("limit",)), "/namespaces", _namespace_lines
    )
    return 0


def _namespace_lines(answer: Json) -> None:
    rows = [(node["name"], str(node["datasets"]), str(node["jobs"])) for node in answer["nodes"]]
    names = {node["id"]: node["name"] for node in answer["nodes"]}
    flows = [
        (names[edge["source"]], names[edge["target"]], str(edge["jobs"]))
        for edge in answer["edges"]
    ]
    if not rows:
        show(["no namespace is known yet"])
        return
    show_table(("NAMESPACE", "DATASETS", "JOBS"), rows, [""] if flows else _cut(answer))
    if flows:
        show_table(("READ FROM", "WRITTEN TO", "JOBS"), flows, _cut(answer))
