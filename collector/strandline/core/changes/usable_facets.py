"""The facets of one job, run or dataset in one event that count."""

from typing import Any

from strandline.core.openlineage.facets import Facet


class UsableFacets(dict[str, Facet]):
    """The usable facets of one entity in one event: neither deleted nor quarantined."""

    def value(self, key: str) -> Any:
        """The modelled content of a facet, or None."""
        facet = self.get(key)
        return None if facet is None else facet.value


NO_FACETS = UsableFacets()
