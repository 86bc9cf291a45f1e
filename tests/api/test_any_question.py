"""Random requests within the OpenAPI document get documented answers."""

import warnings
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from hypothesis import given, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
READS = 22
STREAM = "/api/v2/stream"  # stays open for a minute; asked in test_stream


@pytest.mark.parametrize("examples", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_answers_conform_to_the_openapi_document(bank_client: httpx.Client, examples: int) -> None:
    root = str(bank_client.base_url).removesuffix("/api/v2/")
    schema = (
        schemathesis.openapi.from_url(f"{root}/openapi.json")
        .include(method="GET")
        .exclude(path=STREAM)
    )
    every: Iterable[Any] = schema.get_all_operations()
    operations = [found.ok() for found in every]

    assert len(operations) >= READS
    for operation in operations:
        ask(operation, examples)


def ask(operation: Any, examples: int) -> None:
    """Ask some questions, odd ones among them."""

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None)
    @given(case=operation.as_strategy())
    def answered(case: Any) -> None:
        case.validate_response(case.call(timeout=60), checks=CHECKS)

    answered()
