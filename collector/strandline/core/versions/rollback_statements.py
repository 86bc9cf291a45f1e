"""The statements that take a table back, in the language of its format, as Spark SQL reads them."""

from dataclasses import dataclass

GENERATION = "strandline.generation"  # a property of tables, and of their snapshots


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The way to a table: its name for people, its format, its location where that is known."""

    called: str
    format: str = ""
    location: str = ""

    @property
    def sql_name(self) -> str | None:
        """The name by which Spark SQL finds the table; None where it has none.

        >>> StoredTable("lake.bank.it`s").sql_name, StoredTable("t", "delta", "/lake/t").sql_name
        ('lake.bank.`it``s`', 'delta.`/lake/t`')
        """
        if self.called.count(".") > 1 and "/" not in self.called:
            return ".".join(map(_quoted, self.called.split(".")))
        return (
            f"delta.{_quoted(self.location)}" if self.format == "delta" and self.location else None
        )


def restored_when(table: StoredTable, snapshot: str, generation: int) -> str:
    """Return the condition that holds after a table was taken back to a snapshot."""
    fence = f"the table's {GENERATION} is {generation}"
    if table.format in ("delta", "hudi"):
        return f"its content is that of version {snapshot}, and {fence}"
    return f"the current snapshot is {snapshot}, and {fence}"


def restore(table: StoredTable, snapshot: str, generation: int) -> tuple[str, ...]:
    """Return the statements that take a table back to a snapshot; none where no format has them.

    The id comes from a producer: one that is no number must not become part of a statement.
    """
    name = table.sql_name
    if name is None or not snapshot.isdigit():
        return ()
    catalog, _, rest = table.called.partition(".")
    back = {
        "": f"CALL {_quoted(catalog)}.system.set_current_snapshot('{_escaped(rest)}', {snapshot})",
        "delta": f"RESTORE TABLE {name} TO VERSION AS OF {snapshot}",
        "paimon": f"CALL {_quoted(catalog)}.sys.rollback(table => '{_escaped(rest)}', "
        f"version => '{snapshot}')",
    }
    statement = back.get("" if table.format == "iceberg" else table.format)
    return (statement, _fence(name, generation)) if statement is not None else ()


def clear(table: StoredTable, generation: int) -> tuple[str, ...]:
    """Return the statements that empty a table; none where no format has them.

    A DELETE in an Iceberg table would leave the barriers in its history, from which an aligned job
    reads where it stands.
    """
    name = table.sql_name
    if name is None or table.format == "hudi":
        return ()
    if table.format == "paimon":
        return f"TRUNCATE TABLE {name}", _fence(name, generation)
    empty = (
        f"CREATE OR REPLACE TABLE {name} USING {table.format or 'iceberg'}"
        f" TBLPROPERTIES ('{GENERATION}' = '{generation}') AS SELECT * FROM {name} WHERE false"
        "  -- with PARTITIONED BY, if the table is partitioned"
    )
    return (empty,)


def _fence(name: str, generation: int) -> str:
    return f"ALTER TABLE {name} SET TBLPROPERTIES ('{GENERATION}' = '{generation}')"


def _quoted(part: str) -> str:
    """Return a part of a name as Spark SQL reads it."""
    return part if part.isidentifier() else f"`{part.replace('`', '``')}`"


def _escaped(text: str) -> str:
    """Return the text to put between single quotes in Spark SQL."""
    return text.replace("\\", "\\\\").replace("'", "\\'")
