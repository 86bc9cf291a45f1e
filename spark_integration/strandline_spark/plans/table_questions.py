"""Questions of table formats about their tables while a plan is read.

The registry of formats fills them.
"""

from __future__ import annotations

from collections.abc import Mapping

QUESTIONS: dict[str, Mapping[str, str]] = {}
"""By class of table: questions, by the names of their answers."""
