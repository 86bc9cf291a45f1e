"""DataHub's OpenAPI v3 as it behaves: aspects are replaced as a whole, and an entity must be able to have them."""

from collections import defaultdict
from typing import Any

from contract_servers.server import Asked, ContractServer, Json, path_of

# Which aspects an entity can have, of those that are sent, and what each cannot be without.
ASPECTS: dict[str, dict[str, tuple[str, ...]]] = {
    "dataFlow": {"dataFlowInfo": ("name",), "status": ("removed",)},
    "dataJob": {
        "dataJobInfo": ("name", "type"),
        "dataJobInputOutput": ("inputDatasets", "outputDatasets"),
        "ownership": ("owners", "lastModified"),
        "globalTags": ("tags",),
        "status": ("removed",),
    },
    "dataProcessInstance": {
        "dataProcessInstanceProperties": ("name", "created"),
        "dataProcessInstanceRelationships": ("upstreamInstances",),
        "dataProcessInstanceInput": ("inputs",),
        "dataProcessInstanceOutput": ("outputs",),
        "dataProcessInstanceRunEvent": ("timestampMillis", "status"),
    },
    "dataset": {
        "schemaMetadata": ("schemaName", "platform", "version", "hash", "platformSchema", "fields"),
        "ownership": ("owners", "lastModified"),
        "globalTags": ("tags",),
    },
}


def problem_of(entity_type: str, urn: str, aspect: str, value: Json) -> str | None:
    """Why DataHub would not take this aspect, or would show nothing of it."""
    if entity_type not in ASPECTS or not urn.startswith(f"urn:li:{entity_type}:"):
        return f"{urn} is no {entity_type}"
    if urn.count("(") != urn.count(")"):
        return f"{urn} has odd brackets"
    if aspect not in ASPECTS[entity_type]:
        return f"a {entity_type} has no {aspect}"
    missing = [name for name in ASPECTS[entity_type][aspect] if name not in value]
    return f"{aspect} of {urn} lacks {missing}" if missing else None


class DataHubContract(ContractServer):
    """Entities by urn, each with its aspects; run events in order."""

    def __init__(self) -> None:
        super().__init__()
        self.entities: dict[str, dict[str, Json]] = defaultdict(dict)
        self.run_events: dict[str, list[str]] = defaultdict(list)

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """POST of entities of one type, all or none."""
        path = path_of(asked)
        if asked.method != "POST" or not path.startswith("/openapi/v3/entity/"):
            return 404, {}
        entity_type = path.rpartition("/")[2]
        found = [(one["urn"], name, said["value"]) for one in asked.body for name, said in one.items() if name != "urn"]
        problems = [problem_of(entity_type, *one) for one in found]
        if any(problems):
            return 400, {"message": [one for one in problems if one]}
        for urn, name, value in found:
            self.entities[urn][name] = value
            if name == "dataProcessInstanceRunEvent":
                self.run_events[urn].append(value["status"])
        return 200, []
