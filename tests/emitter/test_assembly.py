"""Assembly of an emitter from its parts."""

from __future__ import annotations

from dataclasses import replace

from fixtures.emitter.builders import conf
from strandline_spark.runs.wiring import spool_folder


def test_console_only_driver_does_not_take_spooled_events() -> None:
    printing, sending = (
        conf(),
        replace(conf(), transport={"type": "http", "url": "http://127.0.0.1:5000"}),
    )

    assert spool_folder(sending) == sending.spool_dir
    assert spool_folder(printing) not in (sending.spool_dir, *sending.spool_dir.parents)
