"""Index of recordings: the applications of each, and what they do to each table."""

from __future__ import annotations

from collections.abc import Mapping

from recordings.programs import batch, delta, past, shapes, streams
from recordings.recording import Application, Recording, one
from recordings.ways_index import WAYS

ORDERS = {
    "id": ("bank.orders.id",),
    "amount": ("bank.orders.amount",),
    "region": ("bank.orders.region",),
}

RECORDINGS: Mapping[str, Recording] = {
    "insert_select": one(
        "nightly",
        batch.insert_select,
        {
            "bank.joined": ("bank.customers", "bank.orders"),
            "bank.moves": ("bank.orders", "bank.refunds"),
        },
    ),
    "merge_after_ctas": one(
        "daily",
        batch.merge_after_ctas,
        {"bank.daily": ("bank.corrections", "bank.orders")},
        newest={"bank.daily": ("bank.corrections",)},
    ),
    "update_delete": one(
        "balances",
        batch.update_delete,
        {"bank.balances": ("bank.blocked", "bank.orders")},
        newest={"bank.balances": ("bank.blocked",)},
    ),
    "two_inserts": one(
        "collect",
        batch.two_inserts,
        {"bank.all_orders": ("bank.orders_eu", "bank.orders_us")},
        newest={"bank.all_orders": ("bank.orders_us",)},
    ),
    "two_applications": Recording(
        (Application("load", batch.load_eu), Application("load", batch.load_us)),
        {"bank.all_orders": ("bank.orders_eu", "bank.orders_us")},
        newest={"bank.all_orders": ("bank.orders_us",)},
    ),
    "failing": Recording(
        (
            Application("risky", batch.failing),
            Application("doomed", batch.failing_at_the_end, ends_well=False),
        ),
        {
            "bank.good": ("bank.orders",),
            "bank.later": ("bank.customers",),
            "bank.before": ("bank.orders",),
        },
        failed=("bank.bad", "bank.good"),
    ),
    "nested_ctas": one(
        "wide",
        batch.nested_ctas,
        {"bank.wide": ("bank.customers", "bank.orders"), "bank.totals": ("bank.wide",)},
    ),
    "partial_columns": one(
        "filters",
        batch.partial_columns,
        {
            "bank.kept": ("bank.active", "bank.orders"),
            "bank.joined_only": ("bank.orders", "bank.regions"),
            "bank.counted": ("bank.orders",),
            "bank.converted": ("bank.orders", "bank.rates"),
        },
        unreported={"bank.converted": ("bank.rates",)},
        columns={"bank.kept": ORDERS, "bank.joined_only": ORDERS, "bank.converted": ORDERS},
    ),
    "foreach_batch": one(
        "enricher",
        streams.foreach_batch,
        {"bank.enriched": ("bank.customers", "bank.orders"), "bank.totals": ("bank.orders",)},
        queries={
            "enrich_orders": {
                "sources": ("bank.customers", "bank.orders"),
                "sinks": ("bank.enriched", "bank.totals"),
            }
        },
    ),
    "two_queries": one(
        "router",
        streams.two_queries,
        {"bank.landed": ("landing/payments",), "bank.copied": ("bank.orders",)},
        unreported={"bank.landed": ("landing/payments",)},
        queries={
            "land_payments": {"sources": ("landing/payments",), "sinks": ("bank.landed",)},
            "bank.copied": {"sources": ("bank.orders",), "sinks": ("bank.copied",)},
        },
    ),
    "available_now": one(
        "merger",
        streams.available_now,
        {"bank.latest": ("landing/changes",)},
        queries={"merge_changes": {"sources": ("landing/changes",), "sinks": ("bank.latest",)}},
    ),
    "failing_stream": one(
        "checker",
        streams.failing_stream,
        {"bank.checked": ("bank.orders",)},
        queries={"check_orders": {"sources": ("bank.orders",), "sinks": ("bank.checked",)}},
    ),
    "killed_stream": Recording(
        (
            Application("mirror", streams.killed_stream, ends_well=False),
            Application("mirror", streams.restarted_stream),
        ),
        {"bank.mirrored": ("bank.orders",), "bank.audited": ("bank.orders",)},
        queries={
            "mirror_orders": {
                "sources": ("bank.orders",),
                "sinks": ("bank.audited", "bank.mirrored"),
            }
        },
    ),
    "ledger": Recording(
        (
            Application("ledger", batch.correct_ledger, ends_well=False),
            Application("publisher", batch.publish_ledger),
        ),
        {
            "bank.ledger": ("bank.closed", "bank.orders", "bank.refunds"),
            "bank.published": ("bank.ledger", "bank.orders"),
            "bank.summary": ("bank.published",),
            "files/regions": ("bank.ledger", "bank.orders"),
        },
        newest={"bank.ledger": ("bank.closed",)},
        failed=("bank.ledger",),
    ),
    "fan_out": one(
        "pricing",
        streams.fan_out,
        {
            "bank.priced": ("bank.orders", "bank.rates"),
            "bank.by_region": ("bank.orders", "bank.rates"),
            "bank.large": ("bank.priced",),
        },
        queries={
            "price_orders": {
                "sources": ("bank.orders", "bank.rates"),
                "sinks": ("bank.by_region", "bank.priced"),
            },
            "keep_large": {"sources": ("bank.priced",), "sinks": ("bank.large",)},
        },
    ),
    "delta_stream": one(
        "cleaner",
        streams.delta_stream,
        {"shop.clean": ("shop.corrections", "shop.events"), "shop.totals": ("shop.clean",)},
        newest={"shop.clean": ("shop.corrections",)},
        unreported={"shop.clean": ("shop.events",)},
        format="delta",
        queries={"clean_events": {"sources": ("shop.events",), "sinks": ("shop.clean",)}},
    ),
    "time_travel": one(
        "traveller",
        past.time_travel,
        dict.fromkeys(
            ("bank.first_day", "bank.tagged", "bank.branched", "bank.compared"), ("bank.orders",)
        ),
        made={
            "bank.first_day": (("bank.orders@0",),),
            "bank.tagged": (("bank.orders@0",),),
            "bank.branched": (("bank.orders@2",),),
            "bank.compared": (("bank.orders@0", "bank.orders@1"),),
        },
    ),
    "recreated": one(
        "reporter",
        past.recreated,
        {"bank.report": ("bank.refunds",)},
        gone={"bank.report": ("bank.orders",)},
        made={"bank.report": (("bank.refunds@0",),)},
    ),
    "evolved": one(
        "margins",
        past.evolved,
        {"bank.margins": ("bank.orders", "bank.rates")},
        made={"bank.margins": (("bank.orders@0",), ("bank.orders@0", "bank.rates@0"))},
    ),
    "rolled_back": one(
        "corrector",
        past.rolled_back,
        {"bank.totals": ("bank.orders",), "bank.published": ("bank.totals",)},
        gone={"bank.totals": ("bank.refunds",)},
        made={
            "bank.totals": (
                ("bank.orders@0",),
                ("bank.refunds@0",),
                ("bank.orders@0",),
                ("bank.totals@2",),
            ),
            "bank.published": (("bank.totals@0",),),
        },
    ),
    "left_rolled_back": one(
        "undoer",
        past.left_rolled_back,
        {"bank.totals": ("bank.orders",)},
        gone={"bank.totals": ("bank.refunds",)},
        made={"bank.totals": (("bank.orders@0",), ("bank.refunds@0",))},
    ),
    "retried": Recording(
        (Application("nightly", past.partly, ends_well=False), Application("nightly", past.again)),
        {"bank.loaded": ("bank.orders",), "bank.enriched": ("bank.customers", "bank.loaded")},
        failed=("bank.enriched",),
        made={
            "bank.loaded": (("bank.orders@0",), ("bank.orders@0",)),
            "bank.enriched": (("bank.customers@0", "bank.loaded@1"),),
        },
    ),
    "without_rows": one(
        "idler",
        past.without_rows,
        {"bank.quiet": ("bank.orders", "bank.refunds")},
        made={
            "bank.quiet": (
                ("bank.orders@0",),
                ("bank.quiet@0", "bank.refunds@0"),
                ("bank.quiet@1",),
                ("bank.quiet@2",),
                ("bank.refunds@0",),
            )
        },
    ),
    "partitions": Recording(
        (
            Application("load_eu", shapes.partitions_eu),
            Application("load_us", shapes.partitions_us),
        ),
        {"bank.sales": ("bank.orders_eu", "bank.orders_us")},
        newest={"bank.sales": ("bank.orders_us",)},
        made={"bank.sales": (("bank.orders_eu@0",), ("bank.orders_us@0",))},
    ),
    "views_and_caches": one(
        "viewer",
        shapes.views_and_caches,
        {
            "bank.from_view": ("bank.customers", "bank.orders"),
            "bank.nested": ("bank.customers", "bank.orders"),
            "bank.from_cache": ("bank.refunds",),
            "bank.pairs": ("bank.orders", "bank.refunds"),
        },
        made={
            "bank.from_view": (("bank.customers@0", "bank.orders@0"),),
            "bank.nested": (("bank.customers@0", "bank.orders@0"),),
            "bank.from_cache": (
                ("bank.refunds@1",),
            ),  # an INSERT of the same session fills the cache anew
            "bank.pairs": (("bank.orders@0", "bank.refunds@1"),),
        },
    ),
    "several_sinks": one(
        "splitter",
        shapes.several_sinks,
        {
            "bank.large": ("bank.orders",),
            "bank.small": ("bank.orders",),
            "bank.left": ("bank.refunds",),
            "bank.right": ("bank.customers",),
        },
        unreported={"bank.large": ("bank.orders",), "bank.small": ("bank.orders",)},
        made={
            "bank.large": (("bank.orders@0",),),
            "bank.small": (("bank.orders@0",),),
            "bank.left": (("bank.refunds@0",),),
            "bank.right": (("bank.customers@0",),),
        },
    ),
    "files_and_tables": one(
        "filer",
        shapes.files_and_tables,
        {
            "files/by_region": ("files/raw",),
            "files/european": ("files/by_region",),
            "files/american": ("files/by_region",),
            "default.european": ("files/american", "files/european"),
            "files/exported": ("default.european",),
        },
    ),
    "delta_batch": one(
        "merchant",
        delta.delta_batch,
        {
            "shop.daily": ("shop.orders", "shop.rates", "shop.refunds"),
            "shop.opening": ("shop.orders",),
        },
        format="delta",
        made={
            "shop.daily": (
                ("shop.orders@1",),
                ("shop.daily@0", "shop.refunds@1"),
                ("shop.daily@1",),
                ("shop.daily@2", "shop.rates@1"),
            ),
            "shop.opening": (("shop.orders@1",),),
        },
    ),
    "delta_changes": one(
        "keeper",
        delta.delta_changes,
        {"shop.report": ("shop.refunds",), "shop.final": ("shop.orders",)},
        unreported={"shop.final": ("shop.orders",)},
        gone={"shop.report": ("shop.orders",), "shop.final": ("shop.refunds",)},
        format="delta",
        made={
            "shop.report": (("shop.refunds@1",),),
            "shop.final": (("shop.orders@1",), ("shop.refunds@1",), ("shop.final@0",)),
        },
    ),
    "delta_again": one(
        "rebuilder",
        delta.delta_again,
        {
            "shop.report": ("shop.refunds",),
            "shop.before": ("shop.report",),
            "shop.after": ("shop.report",),
            "shop.current": ("shop.refunds",),
        },
        gone={
            "shop.report": ("shop.orders",),
            "shop.before": ("shop.refunds",),
            "shop.current": ("shop.orders",),
        },
        format="delta",
        made={
            "shop.report": (("shop.refunds@1",), ("shop.refunds@1",)),
            "shop.before": ((),),  # of a table that is gone
            "shop.after": (("shop.report@0",),),
            "shop.current": (("shop.orders@1",), ("shop.refunds@1",)),
        },
    ),
    **WAYS,
}
