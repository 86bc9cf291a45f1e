"""Options of catalogs in the conf, which are sent to the collector when the application starts.

`spark.strandline.catalog.NAME.table-lineage` and `.data-lineage` (true or false) say whether the
tables of edges, and of snapshots, show a catalog. What the collector refuses is a warning in the
log; while it is away it is asked again.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from strandline_spark.conf_keys import (
    CATALOG_DATA_LINEAGE,
    CATALOG_TABLE_LINEAGE,
    COLLECTOR_URL,
)
from strandline_spark.consistency.collector import Collector, CollectorAwayError, ConsistencyError

_LOG = logging.getLogger("strandline")
_PREFIX = CATALOG_TABLE_LINEAGE.partition("NAME")[0]
_KEYS = tuple(key.rpartition(".")[2] for key in (CATALOG_TABLE_LINEAGE, CATALOG_DATA_LINEAGE))
_KEY = re.compile(rf"{re.escape(_PREFIX)}(?P<catalog>.+)\.(?P<key>{'|'.join(_KEYS)})")
_ATTEMPTS, _PAUSE = 60, 5.0


class Option(NamedTuple):
    """An option of a catalog."""

    catalog: str
    key: str
    value: str


def options_in(conf: Mapping[str, str]) -> list[Option]:
    """The options that a conf has.

    >>> catalog = {"spark.strandline.catalog.lake.data-lineage": "false"}
    >>> options_in({**catalog, "spark.strandline.group": "bank"})
    [Option(catalog='lake', key='data-lineage', value='false')]
    """
    matches = ((_KEY.fullmatch(key), value) for key, value in conf.items())
    return [
        Option(match["catalog"], match["key"], value)
        for match, value in matches
        if match is not None
    ]


def announce(conf: Mapping[str, str]) -> None:
    """Tell the collector that a conf names of the options in it, beside the application."""
    options = options_in(conf)
    if not options:
        return
    try:
        collector = Collector.in_conf(conf.get)
    except ConsistencyError as error:
        _LOG.warning("strandline: options of catalogs in the conf are not sent: %s", error)
        return
    if collector is None:
        _LOG.warning(
            "strandline: options of catalogs in the conf are not sent: %s is not set",
            COLLECTOR_URL,
        )
        return
    threading.Thread(
        target=tell, args=(collector, options), name="strandline-options", daemon=True
    ).start()


def tell(
    collector: Collector, options: list[Option], attempts: int = _ATTEMPTS, pause: float = _PAUSE
) -> None:
    """Set each option at the collector, waiting for one that is away."""
    for option in options:
        for attempt in range(1, attempts + 1):
            try:
                collector.ask("PUT", "/api/v2/catalog-options", option._asdict())
            except CollectorAwayError as error:
                if attempt == attempts:
                    _LOG.warning(
                        "strandline: %s of catalog %s is not sent: %s",
                        option.key,
                        option.catalog,
                        error,
                    )
                time.sleep(pause)
                continue
            except ConsistencyError as error:
                _LOG.warning(
                    "strandline: %s of catalog %s is not taken: %s",
                    option.key,
                    option.catalog,
                    error,
                )
            break
