"""Index of recordings: the applications of each.

What they do to each table is stated in the truth files (`files/NAME.json`).
"""

from __future__ import annotations

from collections.abc import Mapping

from recordings.programs import batch, delta, past, shapes, streams, ways
from recordings.recording import Application, Recording, one

RECORDINGS: Mapping[str, Recording] = {
    "insert_select": one("nightly", batch.insert_select),
    "merge_after_ctas": one("daily", batch.merge_after_ctas),
    "update_delete": one("balances", batch.update_delete),
    "two_inserts": one("collect", batch.two_inserts),
    "two_applications": Recording(
        (Application("load", batch.load_eu), Application("load", batch.load_us))
    ),
    "failing": Recording(
        (
            Application("risky", batch.failing),
            Application("doomed", batch.failing_at_the_end, ends_well=False),
        )
    ),
    "nested_ctas": one("wide", batch.nested_ctas),
    "partial_columns": one("filters", batch.partial_columns),
    "foreach_batch": one("enricher", streams.foreach_batch),
    "two_queries": one("router", streams.two_queries),
    "available_now": one("merger", streams.available_now),
    "failing_stream": one("checker", streams.failing_stream),
    "killed_stream": Recording(
        (
            Application("mirror", streams.killed_stream, ends_well=False),
            Application("mirror", streams.restarted_stream),
        )
    ),
    "ledger": Recording(
        (
            Application("ledger", batch.correct_ledger, ends_well=False),
            Application("publisher", batch.publish_ledger),
        )
    ),
    "fan_out": one("pricing", streams.fan_out),
    "delta_stream": one("cleaner", streams.delta_stream, "delta"),
    "time_travel": one("traveller", past.time_travel),
    "recreated": one("reporter", past.recreated),
    "evolved": one("margins", past.evolved),
    "rolled_back": one("corrector", past.rolled_back),
    "left_rolled_back": one("undoer", past.left_rolled_back),
    "retried": Recording(
        (Application("nightly", past.partly, ends_well=False), Application("nightly", past.again))
    ),
    "without_rows": one("idler", past.without_rows),
    "partitions": Recording(
        (Application("load_eu", shapes.partitions_eu), Application("load_us", shapes.partitions_us))
    ),
    "views_and_caches": one("viewer", shapes.views_and_caches),
    "several_sinks": one("splitter", shapes.several_sinks),
    "files_and_tables": one("filer", shapes.files_and_tables),
    "delta_batch": one("merchant", delta.delta_batch, "delta"),
    "delta_changes": one("keeper", delta.delta_changes, "delta"),
    "delta_again": one("rebuilder", delta.delta_again, "delta"),
    "reading_options": one("optional", ways.reading_options),
    "write_audit_publish": one("auditor", ways.write_audit_publish),
    "overlapping": one("mover", ways.overlapping),
    "data_frames": one("framer", ways.data_frames),
    "reading_its_target": one("balancer", ways.reading_its_target),
    "joined_streams": one("matcher", ways.joined_streams),
    "delta_feed": one("feeder", ways.delta_feed, "delta"),
    "merge_on_read": one("balancer", ways.merge_on_read),
}
