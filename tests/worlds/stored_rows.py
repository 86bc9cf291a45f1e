"""Every row of a store as text: what somebody finds who opens its file."""

from collections.abc import Iterator

import zstandard
from sqlalchemy import Engine, inspect, text

from strandline.store.sql.engine import reading
from strandline.store.sql.small_bodies import COMMON


def stored_rows(engine: Engine) -> Iterator[tuple[str, str]]:
    """Yield each row of each table with its name: the table and a number. Frames are unpacked."""
    with reading(engine).connect() as connection:
        known = {
            id_: bytes(body)
            for id_, body in connection.execute(text("SELECT id, body FROM body_references"))
        }
        for table in inspect(connection).get_table_names():
            for number, row in enumerate(
                connection.execute(text(f"SELECT * FROM {table}")).mappings()
            ):
                shown = (
                    _unpacked(value, known.get(row.get("reference_id") or 0))
                    for value in row.values()
                )
                yield f"{table} {number}", "\n".join(shown)


def _unpacked(value: object, reference: bytes | None) -> str:
    if not isinstance(value, bytes | memoryview):
        return str(value)
    raw = bytes(value)
    if raw[:4] == zstandard.FRAME_HEADER:
        raw = _decompressed(raw, COMMON if reference is None else _decompressed(reference, COMMON))
    return raw.decode("utf-8", "replace")


def _decompressed(frame: bytes, words: bytes) -> bytes:
    dictionary = zstandard.ZstdCompressionDict(words, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdDecompressor(dict_data=dictionary).decompress(frame)
