"""The recorded bank speaks of barriers as the facet's schema does."""

import gzip
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = {"_producer", "_schemaURL"}


def test_recorded_barriers_have_only_members_of_their_schema() -> None:
    schema = json.loads((ROOT / "schemas/strandline_barrier/1-0-0.json").read_text())
    (parts,) = [
        part["properties"]
        for part in schema["$defs"]["StrandlineBarrierRunFacet"]["allOf"]
        if "properties" in part
    ]
    with gzip.open(ROOT / "examples/recorded/bank.jsonl.gz", "rt") as lines:
        events = [json.loads(line)["event"] for line in lines]
    facets = [event["run"]["facets"].get("strandline_barrier") for event in events]
    barriers = [facet for facet in facets if facet is not None]

    assert {name for facet in barriers for name in facet} <= parts.keys() | BASE
    assert {facet.get("group") for facet in barriers} == {None, "bank"}
