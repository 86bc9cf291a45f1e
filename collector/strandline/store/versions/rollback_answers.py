"""A plan for a rollback as the API and the command give it."""

from typing import Any

from strandline.core.openlineage.names import named
from strandline.core.versions.rollback import Plan


def plan_answer(found: Plan) -> dict[str, Any]:
    """Return a plan as JSON shows it."""
    return {
        "kind": found.kind,
        "group": found.group,
        "barrier": found.barrier,
        "generation": found.generation,
        "tables": [named(table) for table in found.tables],
        "jobs": [named(job) for job in found.jobs],
        "steps": [
            {
                "action": step.action,
                "target": step.target,
                "before": step.before,
                "after": step.after,
                **dict(step.details),
            }
            for step in found.steps
        ],
        "why": found.why,
    }
