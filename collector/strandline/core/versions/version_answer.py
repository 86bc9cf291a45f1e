"""The answer to a question for versions, in the kind of consistency that was asked for.

auto: strong if it exists; otherwise a cut by data lineage alone, with the reason why there is no
strong answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from strandline.core.versions.certificates import certify, refuse_contradictions
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.core.versions.promises import Consistency
from strandline.core.versions.strong_weak import (
    Holder,
    Reading,
    held_by,
    strong,
    untracked_among,
    weak,
    weakly_held_by,
)
from strandline.errors import RefusedError

Asked: TypeAlias = Literal["auto", "strong", "weak", "cut"]


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """The model's part of an answer; the tables of a cut are found in the store.

    `refused`: why an auto answer is not strong. `untracked`: why each table that has no barrier has
    none, and what gives it some.
    """

    consistency: Consistency
    readings: Sequence[Reading] = ()
    holders: Sequence[Holder] = ()
    certificate: Mapping[str, Any] | None = None
    refused: RefusedError | None = None
    untracked: Mapping[Table, str] = field(default_factory=dict)


def answer_versions(model: Model, tables: Sequence[Table], consistency: Asked) -> VersionAnswer:
    """Return the answer over `tables`, or raise a RefusedError."""
    if consistency == "cut":
        return VersionAnswer("cut")
    if consistency == "weak":
        readings = weak(model, tables)
        return VersionAnswer(
            "weak",
            readings,
            weakly_held_by(model, readings),
            _certificate(model, readings),
            untracked=untracked_among(model, tables),
        )
    try:
        readings = strong(model, tables)
        certificate = _certificate(model, readings)
    except RefusedError as error:
        if consistency == "strong":
            raise
        return VersionAnswer("cut", holders=held_by(model, tables), refused=error)
    return VersionAnswer("strong", readings, held_by(model, tables, readings), certificate)


def _certificate(model: Model, readings: Sequence[Reading]) -> Mapping[str, Any] | None:
    """Return the certificate of an answer; raise where it contradicts itself."""
    if not readings:
        return None
    certificate = certify(model, readings).as_document()
    refuse_contradictions(certificate)
    return certificate
