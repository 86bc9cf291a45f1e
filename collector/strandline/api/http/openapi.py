"""The OpenAPI document of all operations, and the page /docs made of it.

Both are read from the declarations alone.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape
from typing import Any
from urllib.parse import urlencode

from strandline import __version__
from strandline.api.http import problems
from strandline.api.http.formats import FORMATS, media_of
from strandline.api.http.operations import MOST_VALUES, Operation, Parameter

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
}
STYLE = "body{font:15px/1.5 system-ui;max-width:60em;margin:2em auto;padding:0 1em}code{background:#8882}dt{margin-top:1em}"


def openapi(operations: Iterable[Operation]) -> dict[str, Any]:
    """The document, OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Strandline", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def docs_page(operations: Iterable[Operation]) -> str:
    """A page for people; it needs no script and nothing from elsewhere."""
    entries = "".join(
        _entry(operation) for operation in sorted(operations, key=lambda one: one.path)
    )
    head = f'<meta charset="utf-8"><title>Strandline API</title><style>{STYLE}</style>'
    intro = f'<h1>Strandline {__version__}</h1><p>For programs: <a href="openapi.json">openapi.json</a></p>'
    return f"<!doctype html><html lang=en><head>{head}</head><body>{intro}<dl>{entries}</dl></body></html>"


def docs_headers() -> dict[str, str]:
    """What a browser may do with the page: nothing but show it in its own style."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }


def _described(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": _id(operation),
        "summary": operation.about,
        "parameters": [_parameter(operation, parameter) for parameter in operation.parameters],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {"application/json": {"schema": operation.body}},
        }
    return described


def _id(operation: Operation) -> str:
    """A name that generated clients can use: get_api_v2_jobs_detail."""
    return "_".join([operation.method.lower(), *re.findall(r"\w+", operation.path)])


def _parameter(operation: Operation, parameter: Parameter) -> dict[str, Any]:
    in_path = f"{{{parameter.name}}}" in operation.path
    schema = dict(parameter.kind.schema())
    if parameter.default is not None:
        schema["default"] = parameter.default
    if parameter.many:
        schema = {"type": "array", "items": schema, "maxItems": MOST_VALUES}
    return {
        "name": parameter.name,
        "in": "path" if in_path else "query",
        "required": in_path or parameter.required,
        "description": parameter.about,
        "schema": schema,
        **({} if parameter.example is None else {"example": _example(parameter)}),
    }


def _example(parameter: Parameter) -> Any:
    return [parameter.example] if parameter.many else parameter.example


def _responses(operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {str(operation.status): {"description": operation.about}}
    if operation.answer is not None:
        others = FORMATS[operation.export][1:] if operation.export else ()
        texts = {media_of(name): {"schema": {"type": "string"}} for name in others}
        responses[str(operation.status)]["content"] = {
            operation.media: {"schema": operation.answer}
        } | texts
    if operation.empty is not None:
        responses[str(operation.empty)] = {"description": "done, with nothing to tell"}
    of_rate = {429} if operation.scope in ("read", "admin") else set[int]()
    large = {413} if operation.body is not None else set[int]()
    for status in sorted({400, 401, 503, *operation.refusals, *of_rate, *large}):
        content = {problems.MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        responses[str(status)] = {
            "description": "a problem, told in its detail",
            "content": content,
        }
    return responses


def _entry(operation: Operation) -> str:
    rows = "".join(
        f"<li><code>{escape(parameter.name)}</code>{' (required)' if parameter.required else ''}: "
        f"{escape(parameter.about)}</li>"
        for parameter in operation.parameters
    )
    title = f"<code>{operation.method} {escape(operation.path)}</code> (scope {operation.scope})"
    return f"<dt>{title}</dt><dd>{escape(operation.about)}{_tried(operation)}<ul>{rows}</ul></dd>"


def _tried(operation: Operation) -> str:
    """A link that asks the operation with the examples of its required parameters, where it only reads."""
    needed = [one for one in operation.parameters if one.required]
    asked = {one.name: one.example for one in needed if one.example is not None}
    if operation.method != "GET" or not asked or len(asked) < len(needed) or "{" in operation.path:
        return ""
    address = f"{operation.path}?{urlencode(asked)}"
    return f'<p><a href="{escape(address.lstrip("/"))}"><code>{escape(address)}</code></a></p>'
