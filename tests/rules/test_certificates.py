"""A certificate proves an answer: any change of it is detected."""

import json
from typing import Any

from strandline.core.versions.certificates import certify, digest, verify
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong
from worlds.barriers.history import World
from worlds.barriers.running import play, strong_of
from worlds.barriers.sizes import each_size

JSON = dict[str, Any]


def certificates(world: World, model: Model) -> list[JSON]:
    """One certificate for each table with a strong answer."""
    tables = [one for one in world.truth if isinstance(strong_of(model, one), int)]
    return [certify(model, strong(model, [one])).as_document() for one in tables]


def sealed(document: JSON) -> JSON:
    """Changed, with the digest that fits the change: what a lying server would send."""
    return document | {"digest": digest(document)}


@each_size
def test_certificates_verify_and_altered_ones_do_not(seeds: range) -> None:
    checked = 0
    for seed in seeds:
        world, model = play(seed, lambda *_: None)
        for document in certificates(world, model):
            assert verify(document) == [], f"history {seed}"
            for entry in document["entries"]:
                for used in entry["inputs"]:
                    if not any(one["name"] == used["name"] for one in document["entries"]):
                        continue
                    was, used["snapshotId"] = used["snapshotId"], "another"
                    assert verify(sealed(document)) != [], f"history {seed}"
                    used["snapshotId"] = was
                    checked += 1
    assert checked > len(seeds) / 2


def test_certificate_must_agree_with_table_metadata() -> None:
    answer = {"namespace": "lake", "name": "b", "snapshotId": "2", "barrier": 7}
    inputs = [{"namespace": "lake", "name": "a", "snapshotId": "1"}]
    entries = [
        {"namespace": "lake", "name": "a", "snapshotId": "1", "barrier": 7, "inputs": []},
        {"namespace": "lake", "name": "b", "snapshotId": "2", "barrier": 7, "inputs": inputs},
    ]
    document = sealed({"answer": [answer], "entries": entries})
    honest = {"2": {"strandline.barrier": "7", "strandline.inputs": json.dumps({"a": 1})}}
    other_barrier = {"2": {"strandline.barrier": "6"}}
    other_input = {"2": {"strandline.barrier": "7", "strandline.inputs": json.dumps({"a": 9})}}

    assert verify(document, lambda _, __, snapshot: honest.get(snapshot, {})) == []
    assert verify(document, lambda _, __, snapshot: other_barrier.get(snapshot, {})) == [
        "b: the table says barrier 6, not 7"
    ]
    assert verify(document, lambda _, __, snapshot: other_input.get(snapshot, {})) == [
        "b: the table says it read a at 9, not 1"
    ]


def test_certificate_needs_an_entry_per_answer_and_a_matching_digest() -> None:
    answer = {"namespace": "lake", "name": "b", "snapshotId": "2", "barrier": 7}
    document = sealed({"answer": [answer], "entries": []})

    assert verify(document) == ["b: answer without an entry"]
    assert verify(document | {"digest": "0"}) == [
        "digest: does not belong to these entries",
        "b: answer without an entry",
    ]
