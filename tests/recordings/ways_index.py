"""The recordings of the programs that read and write in ways of their own."""

from __future__ import annotations

from collections.abc import Mapping

from recordings.programs import ways
from recordings.recording import Recording, one

WAYS: Mapping[str, Recording] = {
    "reading_options": one(
        "optional",
        ways.reading_options,
        dict.fromkeys(
            ("bank.old", "bank.increment", "bank.audit", "bank.changes"), ("bank.orders",)
        ),
        made={
            "bank.old": (("bank.orders@0",),),
            "bank.audit": (("bank.orders@2",),),
            "bank.changes": (("bank.orders@1",),),
        },
    ),
    "write_audit_publish": one(
        "auditor",
        ways.write_audit_publish,
        {
            "bank.report": ("bank.orders", "bank.refunds"),
            "bank.copied": ("bank.report",),
            "bank.copied_again": ("bank.report",),
        },
        newest={"bank.report": ("bank.orders",)},
        made={
            "bank.report": (("bank.orders@0",), ("bank.refunds@0",), ("bank.orders@0",)),
            "bank.copied": (("bank.report@0",),),
            "bank.copied_again": (("bank.report@1",),),
        },
    ),
    "overlapping": one(
        "mover",
        ways.overlapping,
        {"bank.moves": ("bank.orders", "bank.refunds")},
        newest={"bank.moves": ("bank.orders",)},
        made={"bank.moves": (("bank.refunds@0",), ("bank.orders@0",))},
    ),
    "data_frames": one(
        "framer",
        ways.data_frames,
        {
            "bank.daily": ("bank.orders", "bank.rates", "bank.refunds"),
            "bank.weekly": ("bank.rates", "bank.refunds"),
        },
        newest={"bank.daily": ("bank.rates",)},
        gone={"bank.weekly": ("bank.daily", "bank.orders")},
        made={
            "bank.daily": (("bank.orders@0",), ("bank.refunds@0",), ("bank.rates@0",)),
            "bank.weekly": (
                ("bank.daily@2",),
                ("bank.orders@0",),
                ("bank.rates@0", "bank.refunds@0"),
            ),
        },
    ),
    "reading_its_target": one(
        "balancer",
        ways.reading_its_target,
        {"bank.balances": ("bank.closed", "bank.orders", "bank.rates", "bank.refunds")},
        newest={"bank.balances": ("bank.closed",)},
        made={
            "bank.balances": (
                ("bank.orders@0",),
                ("bank.balances@0", "bank.refunds@0"),
                ("bank.balances@1", "bank.rates@0"),
                ("bank.balances@2", "bank.rates@0"),
                ("bank.balances@3", "bank.closed@0"),
            )
        },
    ),
    "joined_streams": one(
        "matcher",
        ways.joined_streams,
        {
            "bank.matched": ("bank.orders", "landing/payments"),
            "bank.together": ("bank.customers", "bank.orders"),
        },
        unreported={"bank.matched": ("bank.orders", "landing/payments")},
        queries={
            "match_payments": {
                "sources": ("bank.orders", "landing/payments"),
                "sinks": ("bank.matched",),
            },
            "unite": {"sources": ("bank.customers", "bank.orders"), "sinks": ("bank.together",)},
        },
    ),
    "delta_feed": one(
        "feeder",
        ways.delta_feed,
        {
            "shop.fed": ("shop.orders", "shop.refunds"),
            "shop.changes": ("shop.fed",),
            "shop.whole": ("shop.orders", "shop.refunds"),
        },
        newest={"shop.whole": ("shop.refunds",), "shop.fed": ("shop.refunds",)},
        format="delta",
        made={
            "shop.fed": (
                (),
                ("shop.orders@1",),
                ("shop.fed@1",),
                ("shop.refunds@1",),
                ("shop.fed@3",),
            ),
            "shop.changes": (("shop.fed@2",),),
        },
    ),
    "merge_on_read": one(
        "balancer",
        ways.merge_on_read,
        {"bank.balances": ("bank.closed", "bank.orders", "bank.refunds")},
        newest={"bank.balances": ("bank.closed",)},
        made={
            "bank.balances": (
                ("bank.orders@0",),
                ("bank.balances@0",),
                ("bank.balances@1", "bank.closed@0"),
                ("bank.balances@2", "bank.refunds@0"),
                ("bank.balances@3", "bank.closed@0"),
            )
        },
    ),
}
