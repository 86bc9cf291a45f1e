"""Marquez as its sources have it: which datasets its page shows for a job, by the rules of its job versions."""

from collections import defaultdict
from typing import Any

from contract_servers.server import Asked, ContractServer, Json

ENDS = ("COMPLETE", "FAIL", "ABORT")
Name = tuple[str, str]


class MarquezContract(ContractServer):
    """Jobs with the datasets of their current version; runs with the states that were seen, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.current: dict[Name, tuple[set[Name], set[Name]]] = {}
        self.hidden: set[Name] = set()
        self.states: dict[str, list[str]] = defaultdict(list)
        self._of_run: dict[str, tuple[set[Name], set[Name]]] = defaultdict(lambda: (set(), set()))

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """POST of an event, DELETE of a job."""
        if asked.method == "POST" and asked.path == "/api/v1/lineage":
            return self._event(asked.body)
        if asked.method == "DELETE" and "/jobs/" in asked.path:
            namespace, _, name = asked.path.removeprefix("/api/v1/namespaces/").partition("/jobs/")
            known = (namespace, name) in self.current
            self.hidden.add((namespace, name))
            return (200, {}) if known else (404, {"code": 404})
        return 404, {"code": 404}

    def _event(self, event: Json) -> tuple[int, Any]:
        if not event.get("eventTime") or not event.get("producer"):
            return 422, {"errors": ["eventTime must not be null"]}
        if "dataset" in event:
            return 201, {}
        job = self._job(event)
        datasets = tuple(
            {(one["namespace"], one["name"]) for one in event.get(key) or ()} for key in ("inputs", "outputs")
        )
        self.hidden.discard(job)
        if "run" not in event:
            self.current[job] = datasets[0], datasets[1]
            return 201, {}
        return self._run_event(event, job, datasets)

    def _job(self, event: Json) -> Name:
        """A job below a parent is called by both names, unless its own begins with the parent's."""
        name, parent = event["job"]["name"], event.get("run", {}).get("facets", {}).get("parent")
        if parent and not name.startswith(parent["job"]["name"] + "."):
            name = f"{parent['job']['name']}.{name}"
        return event["job"]["namespace"], name

    def _run_event(self, event: Json, job: Name, datasets: tuple[set[Name], ...]) -> tuple[int, Any]:
        run, kind = event["run"]["runId"], event["eventType"]
        self.states[run].append(kind)
        for known, more in zip(self._of_run[run], datasets, strict=True):
            known |= more
        streaming = event["job"].get("facets", {}).get("jobType", {}).get("processingType") == "STREAMING"
        if (streaming and (datasets[0] or datasets[1])) or (kind in ENDS and not streaming):
            self.current[job] = (set(self._of_run[run][0]), set(self._of_run[run][1]))
        else:
            self.current.setdefault(job, (set(), set()))
        return 201, {}

    def page(self) -> dict[str, str]:
        """What the page shows: each job with its datasets."""
        shown = {}
        for (_, name), (inputs, outputs) in self.current.items():
            shown[name] = (
                f"{','.join(sorted(one for _, one in inputs))} > {','.join(sorted(one for _, one in outputs))}"
            )
        return {name: text for name, text in shown.items() if not any(name == other for _, other in self.hidden)}
