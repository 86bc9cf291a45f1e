"""Every row of a store as text: what somebody finds who opens its file."""

from collections.abc import Iterator

import zstandard
from sqlalchemy import Engine, inspect, text

from strandline.store.sql.engine import reading


def stored_rows(engine: Engine) -> Iterator[tuple[str, str]]:
    """Each row of each table, frames unpacked, by table and number."""
    with reading(engine).connect() as connection:
        known = {
            id_: bytes(body)
            for id_, body in connection.execute(text("SELECT id, body FROM dictionaries"))
        }
        for table in inspect(connection).get_table_names():
            for number, row in enumerate(
                connection.execute(text(f"SELECT * FROM {table}")).mappings()
            ):
                shown = (
                    _unpacked(value, known.get(row.get("dictionary_id") or 0))
                    for value in row.values()
                )
                yield f"{table} {number}", "\n".join(shown)


def _unpacked(value: object, dictionary: bytes | None) -> str:
    if not isinstance(value, bytes | memoryview):
        return str(value)
    raw = bytes(value)
    if raw[:4] == zstandard.FRAME_HEADER:
        data = zstandard.ZstdCompressionDict(_content(dictionary)) if dictionary else None
        raw = zstandard.ZstdDecompressor(dict_data=data).decompress(raw)
    return raw.decode("utf-8", "replace")


def _content(dictionary: bytes) -> bytes:
    """What a dictionary is: one that was trained, or an earlier body, which is packed itself."""
    return (
        zstandard.decompress(dictionary) if dictionary[:4] == zstandard.FRAME_HEADER else dictionary
    )
