"""HTTP itself: routing, operations, bodies, problem details, paging, keys, OpenAPI."""
