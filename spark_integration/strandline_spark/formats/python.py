"""Python data sources (Spark 4.0 on; Spark 3.5 has none).

Spark knows a Python source by its short name alone, so that is its dataset's name, unless its
options name a path or a table. A source that wants to say more is a LineageVertexProvider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import Jvm, simple_name
from strandline_spark.model.statement import Dataset

# travels in the dataset, and never further than `listeners.vertex_providers`
OPTIONS = "strandline_python_options"


def with_options(dataset: Dataset, options: Mapping[str, str]) -> Dataset:
    """The dataset of a Python source with the options that it was made with, for `provided`."""
    return replace(dataset, facets={**dataset.facets, OPTIONS: dict(options)})


class Python(Format):
    """PythonTable."""

    name = "python"
    rank = 70

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The source by its short name, with its table or path and its options."""
        if mention.table is None or simple_name(mention.table) != "PythonTable":
            return None
        source = str(mention.table.name()).removeprefix("(Python)").strip() or "source"
        options = {key.lower(): value for key, value in mention.options.items()}
        named = options.get("table") or options.get("path")
        dataset = Dataset(f"python://{source}", named or source, self.name, mention.schema)
        return with_options(dataset, mention.options)


FORMAT = Python()
