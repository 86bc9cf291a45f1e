"""A plan for a rollback as the API and the command give it."""

from typing import Any

from strandline.core.openlineage.names import named
from strandline.core.versions.rollback import Plan


def plan_answer(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON shows it."""
    return {
        "kind": plan.kind,
        "group": plan.group,
        "barrier": plan.barrier,
        "generation": plan.generation,
        "tables": [named(table) for table in plan.tables],
        "jobs": [named(job) for job in plan.jobs],
        "steps": [
            {
                "action": step.action,
                "target": step.target,
                "before": step.before,
                "after": step.after,
                **dict(step.details),
            }
            for step in plan.steps
        ],
        "why": plan.why,
    }
