"""`spark.strandline.catalog.NAME.untracked`.

Whether tables without barriers may be read beside those that have some.

`refuse` (the default): a consistent read over such a table is refused, with the reason. `latest`:
it is read as it is, and nothing is promised of it.
`spark.strandline.catalog.NAME.untracked.DATABASE.TABLE` says so of one table.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from strandline_spark.conf_keys import CATALOG_UNTRACKED

_WORDS = ("refuse", "latest")


def is_read_at_latest(spark: SparkSession, table: str) -> bool:
    """Return true if the session's conf lets this table be read at its latest.

    The table is catalog.database.table.
    """
    return untracked_word(lambda key: spark.conf.get(key, None), table) == "latest"


def untracked_word(conf: Callable[[str], str | None], table: str) -> str:
    """Return the conf's word for an untracked table. Raises ValueError for another word.

    >>> conf = {"spark.strandline.catalog.lake.untracked.bank.rates": "latest"}
    >>> untracked_word(conf.get, "lake.bank.rates"), untracked_word(conf.get, "lake.bank.credits")
    ('latest', 'refuse')
    """
    catalog, _, rest = table.partition(".")
    key = CATALOG_UNTRACKED.replace("NAME", catalog)
    for key_tried in (f"{key}.{rest}", key):
        word = conf(key_tried)
        if word is not None:
            if word not in _WORDS:
                raise ValueError(f"{key_tried}: {word!r} is none of {', '.join(_WORDS)}")
            return word
    return CATALOG_UNTRACKED.default
