"""Families of job names: dates and ids make one, numbers alone make a possible one."""

from datetime import date, timedelta

from strandline.core.job_families import families_of


def test_thousand_dated_names_are_one_family_for_each_job() -> None:
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(500)]
    names = [f"{job}_{day}" for day in days for job in ("stage1", "stage2")]

    families = families_of(("prod", name) for name in names)

    assert [(family.pattern, len(family.names), family.is_sure) for family in families] == [
        ("stage1_{date}", 500, True),
        ("stage2_{date}", 500, True),
    ]


def test_query_ids_and_uuids_are_placeholders() -> None:
    names = (
        "20261127_101112_00012_ab3de",
        "20261128_101112_00013_ab3de",
        "load.3f2b8a10-1111-4222-8333-0123456789ab",
        "load.3f2b8a10-1111-4222-8333-0123456789ac",
    )

    families = families_of(("trino://host", name) for name in names)

    assert [(family.pattern, family.is_sure) for family in families] == [
        ("load.{uuid}", True),
        ("{query}", True),
    ]


def test_names_that_differ_in_a_number_are_not_sure() -> None:
    names = ("etl_v1", "etl_v2", "stage1", "stage2", "report", "other_2026-11-27")

    families = families_of(("prod", name) for name in names)

    assert [(family.pattern, family.is_sure) for family in families] == [
        ("etl_v{number}", False),
        ("stage{number}", False),
    ]


def test_jobs_of_two_namespaces_are_no_family() -> None:
    assert families_of([("a", "daily_2026-11-27"), ("b", "daily_2026-11-28")]) == []
