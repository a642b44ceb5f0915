"""Confined worker that evaluates users' conditions and templates.

In: JSON with values, texts and the current time. Out: JSON. Never: runs in the main process.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.languages.expr import compile_expression
from argosy.languages.go_printf import format_value
from argosy.languages.go_templates import compile_template
from argosy.languages.notification_functions import build_function_namespaces

EVALUATE_FUNCTION: Final = "argosy.features.notifications.condition_and_template_worker:evaluate_conditions"
RENDER_FUNCTION: Final = "argosy.features.notifications.condition_and_template_worker:render_templates"
MAX_TEMPLATE_TEXTS: Final = 200
VERBATIM_FIELDS: Final = frozenset({"method", "deliveryPolicy", "commentTag"})  # argo: these fields are not templates


def evaluate_conditions(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Evaluate each condition and its oncePer. argo: a condition that fails counts as false."""
    values = {
        **payload["values"],
        **build_function_namespaces(datetime.fromisoformat(payload["now"]), payload.get("commits")),
    }
    return [_evaluate_condition(condition, values) for condition in payload["conditions"]]


def _evaluate_condition(condition: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    try:
        if compile_expression(condition["when"]).evaluate(values) is not True:
            return {"holds": False, "once": "", "fault": ""}
    except UserError as error:
        return {"holds": False, "once": "", "fault": f"when: {error}"}
    if not condition["once"]:
        return {"holds": True, "once": "", "fault": ""}
    try:
        return {
            "holds": True,
            "once": format_value(compile_expression(condition["once"]).evaluate(values)),
            "fault": "",
        }
    except UserError as error:
        return {"holds": True, "once": "", "fault": f"oncePer: {error}"}


def render_templates(payload: dict[str, Any]) -> dict[str, Any]:
    """Render the templates in order; fields of a later template replace those of an earlier one."""
    now = datetime.fromisoformat(payload["now"])
    values = {**payload["values"], **build_function_namespaces(now, payload.get("commits"))}
    remaining_texts = [MAX_TEMPLATE_TEXTS]

    def render_value(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: render_value(item, str(key)) for key, item in value.items()}
        if isinstance(value, list):
            return [render_value(item) for item in value]
        if not isinstance(value, str) or name in VERBATIM_FIELDS or "{{" not in value:
            return value
        remaining_texts[0] -= 1
        if remaining_texts[0] < 0:
            raise UserError(f"templates have more than {MAX_TEMPLATE_TEXTS} texts; use fewer")
        return compile_template(value).render(values, now=now)

    notification: dict[str, Any] = {}
    try:
        for template in payload["templates"]:
            notification |= render_value(template)
    except UserError as error:
        return {"fault": str(error)}
    return {"notification": notification}
