"""The inputs of a run from which one of its outputs was made, where the run says so.

Several statements may be one run.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from strandline.core.changes.edges import BY_LINEAGE
from strandline.store.lineage.edge_sets import edge_sets_of


@dataclass(frozen=True, slots=True)
class StatedInputs:
    """By run and output (canonical) the inputs (canonical) that the output was made of.

    What states none may be of all.
    """

    of_output: Mapping[tuple[int, int], Collection[int]]

    def admit(self, run: int, output: int, source: int) -> bool:
        """Return whether the run may have made the output of this input."""
        stated = self.of_output.get((run, output))
        return stated is None or source in stated


def stated_inputs(connection: Connection, runs: Collection[int]) -> StatedInputs:
    """Return the `lineage` facets of these runs."""
    sets = edge_sets_of(connection, runs)
    inputs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for run, uses in sets.of_run.items():
        for use in uses:
            if use.rule == BY_LINEAGE:
                inputs[run, use.sink].update(
                    edge.source for edge in sets.edges.get(use.set_hash, ())
                )
    return StatedInputs(inputs)
