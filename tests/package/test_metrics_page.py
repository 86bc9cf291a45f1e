"""docs/reference/metrics.md lists every metric of the program, with type, labels and meaning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from strandline.metrics import Metrics

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/metrics.md"


def documented_rows() -> Iterator[str]:
    """Yield a row of the page for each metric that is not Python's own."""
    registry = Metrics().registry
    for collector in registry._collector_to_names:
        for family in collector.collect():
            if not family.name.startswith("strandline_"):
                continue
            owner: Any = collector if hasattr(collector, "_labelnames") else family
            labels = owner._labelnames
            name = f"{family.name}_total" if family.type == "counter" else family.name
            of = f"{{{', '.join(labels)}}}" if labels else ""
            yield f"| `{name}{of}` | {family.type} | {family.documentation} |"


def test_metrics_page_is_up_to_date() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert rows == [*documented_rows()]
    assert len(rows) > 30
