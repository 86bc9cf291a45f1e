"""The registry of table formats.

The first format that recognises a mention decides, the narrowest is asked first.

A new format is one folder (or module) here and one line in `MODULES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module

from strandline_spark.columns.commands import COMMANDS, WITHOUT_COLUMNS
from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import ReadBy
from strandline_spark.jvm.class_names import Internal
from strandline_spark.jvm.client import Jvm
from strandline_spark.model.statement import VERSIONED, Dataset
from strandline_spark.plans.questions import OF_TABLES

MODULES = (
    "delta.datasets",
    "files",
    "hive",
    "hudi.datasets",
    "iceberg.datasets",
    "jdbc.datasets",
    "kafka",
    "paimon.datasets",
    "python",
    "views",
)

PLANS_IN: dict[str, Sequence[str]] = {}
"""By the name of a format's own command: the fields that hold plans."""
READS: dict[str, ReadBy] = {}
"""By the name of a format's own command: what it reads that is no plan inside it."""


@lru_cache(maxsize=1)
def formats() -> tuple[Format, ...]:
    """All formats, the narrowest first."""
    modules = (import_module(f"strandline_spark.formats.{name}").FORMAT for name in MODULES)
    return tuple(sorted(modules, key=lambda format_: format_.rank))


def identified(mention: Mention, jvm: Jvm) -> tuple[Format, Dataset] | None:
    """The format that a mention belongs to, and the dataset it names."""
    for format_ in formats():
        dataset = format_.dataset_of(mention, jvm)
        if dataset is not None:
            return format_, dataset
    return None


def relied_on() -> tuple[Internal, ...]:
    """The private fields that formats rely on."""
    return tuple(field for format_ in formats() for field in format_.relies_on)


def register() -> None:
    """Register what the formats ask of tables, and how their own commands are resolved.

    Plans and columns look there.
    """
    for format_ in formats():
        OF_TABLES.update(format_.asked)
        COMMANDS.update(format_.commands)
        WITHOUT_COLUMNS.update(format_.without_columns)
        PLANS_IN.update(format_.plans_in)
        READS.update(format_.reads)
        VERSIONED.update([format_.name] if format_.versioned else [])


register()
