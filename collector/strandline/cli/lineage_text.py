"""Answers about lineage as text.

Trees read from a node outwards, with a job between each two datasets.

Made of the JSON that the API answers with, so it does not matter where an answer came from. What a
tree has shown once it does not show again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from strandline.cli.answers import counted, state_word
from strandline.core.labels import label_of, labels_of

Json = dict[str, Any]

NOTHING = "nothing that is known"
MOST_NAMED = 3  # tables of a line
DEEPEST = 100  # levels of a tree that a screen can show


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of a tree and what hangs below it."""

    text: str
    below: list["Branch"] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the drawn tree."""
        yield self.text
        for place, branch in enumerate(self.below, 1):
            first, others = ("└─ ", "   ") if place == len(self.below) else ("├─ ", "│  ")
            for number, line in enumerate(branch.lines()):
                yield (others if number else first) + line


@dataclass(slots=True)
class Tree:
    """A tree that grows from a node; `label` and `below` describe each key.

    A key is expanded once.

    `note` is written behind a key below another. Keys of which `node` gives the same have the same
    below them.
    """

    label: Callable[[Any], str]
    below: Callable[[Any], Iterable[Any]]
    note: Callable[[Any, Any], str] = lambda _above, _key: ""
    node: Callable[[Any], Any] = lambda key: key
    shown: set[Any] = field(default_factory=set)

    def grow(self, key: Any, depth: int = 0, above: Any = None) -> Branch:
        """Return the branch of a key."""
        below = list(self.below(key))
        text = self.label(key) + (self.note(above, key) if depth else "")
        if not below and depth == 0:
            return Branch(text, [Branch(NOTHING)])
        expanded = self.node(key) in self.shown
        if below and (expanded or depth == DEEPEST):
            return Branch(f"{text}  ...{' (see above)' if expanded else ''}")
        self.shown.add(self.node(key))
        return Branch(text, [self.grow(node, depth + 1, key) for node in below])


def lineage_text(answer: Json, starts: Sequence[str], direction: str = "both") -> str:
    """Return the lineage of datasets or jobs as text."""
    labels = labels_of(answer["nodes"])
    nodes = {node["id"]: node | {"label": labels[node["id"]]} for node in answer["nodes"]}
    name = " and ".join(labels[start] for start in starts)
    verb = "is" if len(starts) == 1 else "are"
    halves = []
    for heading, upstream in (
        (f"What {name} {verb} made from:", True),
        (f"What is made from {name}:", False),
    ):
        if direction != ("downstream" if upstream else "upstream"):
            tree = _table_tree(answer, nodes, upstream=upstream)
            halves.append(Half(heading, [tree.grow(start) for start in starts]))
    return "\n".join([*_both(halves, answer), *cut_lines(answer), *_failed_runs(answer)]).rstrip()


def _failed_runs(answer: Json) -> Iterator[str]:
    """Yield the failed runs that left out edges, and how to see them."""
    for run in answer.get("failedRuns", ()):
        reason = f": {run['error']}" if run["error"] else ""
        yield f"(the latest run of job {run['name']} is {state_word(run['state'])}{reason}"
        if write := run.get("lastWrite"):
            labels = labels_of([*answer["nodes"], *write["reads"], *write["writes"]])
            reads, writes = (_some(labels, write[key]) for key in ("reads", "writes"))
            ended = f", {_time(write['endedAt'])}," if write["endedAt"] else ""
            yield f" its last write{ended} was {writes} from {reads}: --state recent shows it"
        yield f" strandline runs --job '{run['job']}' shows its runs)"


def _some(labels: Mapping[str, str], nodes: Sequence[Json]) -> str:
    """Return the first few of these nodes by their labels."""
    if not nodes:
        return NOTHING
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return ", ".join(labels[node["id"]] for node in nodes[:MOST_NAMED]) + more


@dataclass(frozen=True, slots=True)
class Half:
    """One side of the requested nodes: a tree for each start."""

    heading: str
    trees: list[Branch]

    @property
    def is_empty(self) -> bool:
        """True if no start has anything on this side."""
        return all(tree.below == [Branch(NOTHING)] for tree in self.trees)


def _both(halves: Iterable[Half], answer: Json) -> Iterator[str]:
    """Yield the halves of an answer that have something in them; the first, if none has.

    Where all that there may be was cut off, the node that was asked for stands alone: the text does
    not claim that there is nothing.
    """
    sides = list(halves)
    if not answer["complete"] and all(half.is_empty for half in sides):
        yield from [*(tree.text for tree in sides[0].trees), ""]
        return
    for half in [half for half in sides if not half.is_empty] or sides[:1]:
        yield half.heading
        for tree in half.trees:
            yield from tree.lines()
        yield ""


def _table_tree(answer: Json, nodes: dict[str, Json], *, upstream: bool) -> Tree:
    """Return a tree whose keys are nodes, and (job, dataset) for a job on the way from a dataset.

    What a job shows depends on the dataset that leads to it.
    """
    near, far = ("target", "source") if upstream else ("source", "target")
    edges = defaultdict(list)
    for edge in answer["edges"]:
        edges[edge[near]].append(edge)
    by_ends = {frozenset((edge["source"], edge["target"])): edge for edge in answer["edges"]}

    def note(above: Any, key: Any) -> str:
        ends = (part if isinstance(part, str) else part[0] for part in (above, key))
        return _not_newest(by_ends.get(frozenset(ends), {}))

    def below(key: Any) -> list[Any]:
        if isinstance(key, str):
            by_job = nodes[key]["type"] != "job"
            ends = [edge[far] for edge in edges[key]]
            return [(end, key) if by_job and nodes[end]["type"] == "job" else end for end in ends]
        job, dataset = key
        if by_ends[frozenset(key)].get("through"):
            # Hidden nodes lie between: what they join is not known here.
            return [edge[far] for edge in edges[job]]
        if upstream:
            writes = [edge for edge in edges[dataset] if edge[far] == job]
            return [origin for edge in writes for origin in edge.get("origins", ())]
        return [edge[far] for edge in edges[job] if dataset in edge.get("origins", (dataset,))]

    return Tree(lambda key: _named(nodes[key if isinstance(key, str) else key[0]]), below, note)


def _not_newest(edge: Json) -> str:
    """Return a note on an edge: later runs without it, or hidden steps."""
    if edge.get("through"):
        return (
            f"  (past {edge['through']} that {'is' if edge['through'] == 1 else 'are'} not shown)"
        )
    if later := edge.get("latestRun"):
        ended = f" {_time(later['endedAt'])}" if later["endedAt"] else ""
        state = state_word(later["state"])
        return f"  (latest run {state}{ended}; last seen {_time(edge['lastSeen'])})"
    if edge.get("inLatest", True):
        return ""
    return (
        f"  (not in the latest run: in {edge['runs']} of {edge['ofRuns']}, last "
        f"{_time(edge['lastSeen'])})"
    )


def snapshot_text(answer: Json, direction: str = "both") -> str:
    """Return the lineage of a snapshot, which is the answer's first node, as text."""
    start = label_of(answer["nodes"][0])
    lines = _stepwise(
        answer, _snapshot, direction, f"What {start} is made from:", f"What is made from {start}:"
    )
    return "\n".join([*lines, *cut_lines(answer)]).rstrip()


def column_text(answer: Json, direction: str = "both") -> str:
    """Return the lineage of the columns that the answer starts from."""
    labels = labels_of(answer["nodes"])
    lines = _stepwise(
        answer,
        lambda node: labels.get(node["id"]) or label_of(node),
        direction,
        "What the columns are made from:",
        "What is made from the columns:",
    )
    return "\n".join([*lines, *cut_lines(answer)]).rstrip()


def run_text(answer: Json) -> str:
    """Return the runs that a run, the answer's first node, stands on as text."""
    nodes = {node["id"]: node for node in answer["nodes"]}
    below: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for edge in answer["edges"]:
        how = f"@ {edge['snapshotId']}" if edge["snapshotId"] else "was written last by it"
        below[edge["target"]].append((edge["source"], f"  ({_short(edge['dataset'])} {how})"))
    for node in answer["nodes"]:
        below[node["id"]] += [("", _short(dataset)) for dataset in node["inputsOfUnknownRuns"]]

    def label(key: tuple[str, str]) -> str:
        id_, how = key
        return f"{_run(nodes[id_])}{how}" if id_ else f"{how}  (no run is known that wrote it)"

    tree = Tree(label, lambda key: below[key[0]] if key[0] else (), node=lambda key: key[0] or key)
    start = answer["nodes"][0]
    lines = [f"What {start['runId']} stands on:", *tree.grow((start["id"], "")).lines()]
    return "\n".join([*lines, *cut_lines(answer)])


def _run(node: Json) -> str:
    return f"run {node['runId']} of {node['name']}{_state(node)}"


def _stepwise(
    answer: Json, label: Callable[[Json], str], direction: str, up: str, down: str
) -> list[str]:
    """Trees of an answer whose edges go straight from node to node, each with its job."""
    halves = []
    for heading, near, far in ((up, "target", "source"), (down, "source", "target")):
        if direction != ("downstream" if near == "target" else "upstream"):
            tree = _step_tree(answer, label, near, far)
            trees = [tree.grow((start, "")) for start in _step_starts(answer, near, far)]
            halves.append(Half(heading, trees or [Branch("no column", [Branch(NOTHING)])]))
    return list(_both(halves, answer))


def _step_starts(answer: Json, near: str, far: str) -> list[str]:
    """Return the nodes from which the answer starts.

    A job is no node of these answers: it has the nearest nodes that none of them leads on to.
    """
    if not answer["nodes"]:
        return []
    distance = min(node["distance"] for node in answer["nodes"])
    nearest = [node for node in answer["nodes"] if node["distance"] == distance]
    if distance == 0:
        left_out = {_origin(node) for node in nearest}
    else:
        left_out = _led_to(answer["edges"], {node["id"] for node in nearest}, near, far)
        if left_out.issuperset(node["id"] for node in nearest):  # a circle
            left_out = set()
    return [node["id"] for node in nearest if node["id"] not in left_out]


def _led_to(edges: Sequence[Json], starts: set[str], near: str, far: str) -> set[str | None]:
    """Return the far ends of the edges that begin at one of these nodes and leave it."""
    return {edge[far] for edge in edges if edge[near] in starts and edge[near] != edge[far]}


def _step_tree(answer: Json, label: Callable[[Json], str], near: str, far: str) -> Tree:
    nodes = {node["id"]: node for node in answer["nodes"]}
    edges: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for edge in answer["edges"]:
        edges[edge[near]][edge[far], _how(edge)] = None
    for node in answer["nodes"] if near == "target" else ():
        if node["distance"] == 0 and (origin := _origin(node)) is not None:
            edges[node["id"]][origin, ""] = None
        for dataset in node.get("inputsOfUnknownSnapshots", ()):
            nodes[dataset["id"]] = dataset
            edges[node["id"]][dataset["id"], "  (at which snapshot is not known)"] = None
    return Tree(
        lambda key: f"{label(nodes[key[0]])}{key[1]}",
        lambda key: edges[key[0]],
        node=lambda key: key[0],
    )


def _origin(node: Json) -> str | None:
    """Return the snapshot of the same table whose rows a snapshot shows."""
    same = node.get("sameRowsAs")
    return None if same is None else f"{node['id'].removesuffix(node['snapshotId'])}{same}"


def _how(edge: Json) -> str:
    """Return the note on an edge, besides its ends."""
    if "transform" not in edge:
        return "  (not proven)" if edge["observed"] else ""
    kind = (edge["type"] or "").lower()
    return "".join(
        [
            f"  = {edge['transform']}" if edge["transform"] else "",
            f"  ({kind})" if kind == "indirect" else "",
            f"  by {_short(edge['job'])}",
            _opaque(edge),
            f"  (stated as {', '.join(edge['otherCase'])})" if edge.get("otherCase") else "",
            _not_newest(edge),
        ]
    )


def _opaque(edge: Json) -> str:
    """Describe where columns cannot be followed, with the steps that the producer names."""
    steps = ", ".join(edge.get("opaqueSteps") or ())
    return f"  (not followable here{': ' + steps if steps else ''})" if edge.get("opaque") else ""


def _named(node: Json) -> str:
    if node["type"] != "job":
        return str(node.get("label") or label_of(node)) + (
            f"  (dropped {_time(node['droppedAt'])})" if node.get("droppedAt") else ""
        )
    return f"job {node['name']}{_state(node)}"


def _state(job: Json) -> str:
    """Return a summary of a job's latest run."""
    if not job.get("state"):
        return ""
    when = f"since {_time(job['startedAt'])}" if job["running"] else _time(job["endedAt"])
    why = f": {job['error']}" if job.get("error") and job["state"] == "FAIL" else ""
    failed = f"  ({job['failedChildren']} below it failed)" if job.get("failedChildren") else ""
    return f"  {state_word(job['state'])} {when}".rstrip() + why + failed


def _snapshot(node: Json) -> str:
    maker, same = node.get("madeBy"), node.get("sameRowsAs")
    if maker is None:
        return label_of(node) + (f"  the rows of {same}" if same else "")
    barrier = "" if maker["barrierId"] is None else f"  barrier {maker['barrierId']}"
    return f"{label_of(node)}{barrier}  by {_short(maker['job'])}"


def _short(job: str) -> str:
    """Return a job's name without its namespace; only for people, as names may hold colons."""
    return job.rpartition(":")[2]


def _time(moment: str | None) -> str:
    return (moment or "").replace("T", " ").partition(".")[0].rstrip("Z")


def cut_lines(answer: Json) -> list[str]:
    """Return lines below an answer: the limit that cut it, and what it leaves out."""
    return [*_why_cut(answer), *not_shown(answer)]


def _why_cut(answer: Json) -> list[str]:
    if answer["complete"]:
        return []
    if answer["truncatedBy"] == "depth":
        return [f"(there is more behind{_at_least(answer)}: a greater --depth shows it)"]
    return [
        (
            f"(cut{_at_least(answer)}: too many {answer['truncatedBy']}; a greater --limit, "
            "or a smaller --depth, shows it whole)"
        )
    ]


def _at_least(answer: Json) -> str:
    number = (answer.get("hidden") or {}).get("nodes")
    return f", at least {counted(number, 'node')}" if number else ""


NOT_SHOWN = {
    "schemas": (
        "dataset without a stored schema at one of the moments",
        "datasets without a stored schema at one of the moments",
    ),
    "edges": ("edge of earlier, failed or ended runs", "edges of earlier, failed or ended runs"),
    "filtered": ("node that was filtered", "nodes that were filtered"),
    "dependencies": ("edge of other dependencies", "edges of other dependencies"),
}


def not_shown(answer: Json, **words: tuple[str, str]) -> list[str]:
    """Return the numbers of what a window or a filter hid.

    What a limit or a depth cut off is noted where it happened.

    words: what is counted, where this answer counts something else under a name.
    """
    hidden = answer.get("hidden") or {}
    counts = [
        counted(hidden[name], *what)
        for name, what in (NOT_SHOWN | words).items()
        if hidden.get(name)
    ]
    return [f"(not shown: {', '.join(counts)})"] if counts else []
