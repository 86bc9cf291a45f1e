"""The oracle's answer to who made a snapshot, where several runs claim to have."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worlds.oracle import Oracle

Json = dict[str, Any]
Claim = tuple[str, int, str, str]  # run, barrier, table, snapshot


def claim(event: Json, dataset: Json) -> Claim:
    """Return an event's claim about the outputs of its run."""
    facet = event["run"]["facets"].get("strandline_barrier", {"phase": ""})
    barrier = facet["barrierId"] if facet["phase"] == "committed" else 0
    return (
        event["run"]["runId"],
        barrier,
        dataset["name"],
        dataset["inputFacets"]["strandline_snapshot"]["snapshotId"],
    )


def claims(oracle: "Oracle") -> dict[Claim, tuple[bool, str]]:
    """Each claim with whether it is stated, and when it was so last."""
    found: dict[Claim, tuple[bool, str]] = {}
    for event, _ in oracle.events:
        for dataset in event["outputs"]:
            if own := dataset["inputFacets"].get("strandline_snapshot"):
                one, said = claim(event, dataset), (not own.get("observed"), event["eventTime"])
                found[one] = max(found.get(one, said), said)
    return found


def is_maker(oracle: "Oracle", asked: Claim) -> bool:
    """A snapshot has one maker, unless several state it themselves.

    The surest claim counts, then the first.

    What a batch run that failed has only observed is no claim.
    """
    found = {
        one: said
        for one, said in claims(oracle).items()
        if said[0] or not has_failed_as_batch(oracle, one[0])
    }
    if asked not in found or found[asked][0]:
        return asked in found
    table = oracle.canonical(asked[2])
    rivals = [
        said
        for one, said in found.items()
        if one[0] != asked[0] and one[3] == asked[3] and oracle.canonical(one[2]) == table
    ]
    return all(not stated and time > found[asked][1] for stated, time in rivals)


def has_failed_as_batch(oracle: "Oracle", run: str) -> bool:
    """Return true if the run failed and was no streaming one."""
    return oracle.state(run) == "FAIL" and not oracle.is_streaming(run)


def has_read(event: Json, dataset: Json) -> bool:
    """Return true if a run has read the snapshot.

    Not where that is only observed, and is what the event says it has made.
    """
    own = dataset["inputFacets"]["strandline_snapshot"]
    made = [
        one["outputFacets"].get("strandline_snapshot")
        for one in event["outputs"]
        if one["name"] == dataset["name"]
    ]
    return not own.get("observed") or own["snapshotId"] not in [
        one["snapshotId"] for one in made if one
    ]
