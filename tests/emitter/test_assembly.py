"""How the parts of an emitter are put together."""

from __future__ import annotations

from dataclasses import replace

from fixtures.emitter.builders import conf
from strandline_spark.runs.wiring import spool_folder


def test_a_driver_that_only_prints_its_events_takes_none_that_wait_for_a_collector() -> None:
    printing, sending = conf(), replace(conf(), transport={"type": "http", "url": "http://127.0.0.1:5000"})

    assert spool_folder(sending) == sending.spool_dir
    assert spool_folder(printing) not in (sending.spool_dir, *sending.spool_dir.parents)
