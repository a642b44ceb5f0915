"""Confined worker that evaluates users' conditions and templates.

In: JSON with values, texts and the current time. Out: JSON. Never: runs in the main process.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.languages.expr import compile_expression
from argosy.languages.go_format import text_of
from argosy.languages.go_templates import compile_template
from argosy.languages.notification_functions import namespaces

JUDGE: Final = "argosy.features.notifications.template_worker:judge"
FILL: Final = "argosy.features.notifications.template_worker:fill"
MOST_TEXTS: Final = 200
VERBATIM: Final = frozenset({"method", "deliveryPolicy", "commentTag"})  # argo: these fields are not templates


def judge(payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Evaluate each condition and its oncePer. argo: a condition that fails counts as false."""
    values = {**payload["values"], **namespaces(datetime.fromisoformat(payload["now"]), payload.get("commits"))}
    return [_judged(each, values) for each in payload["conditions"]]


def _judged(condition: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    try:
        if compile_expression(condition["when"]).evaluate(values) is not True:
            return {"holds": False, "once": "", "fault": ""}
    except UserError as error:
        return {"holds": False, "once": "", "fault": f"when: {error}"}
    if not condition["once"]:
        return {"holds": True, "once": "", "fault": ""}
    try:
        return {"holds": True, "once": text_of(compile_expression(condition["once"]).evaluate(values)), "fault": ""}
    except UserError as error:
        return {"holds": True, "once": "", "fault": f"oncePer: {error}"}


def fill(payload: dict[str, Any]) -> dict[str, Any]:
    """Render the templates in order; fields of a later template replace those of an earlier one."""
    now = datetime.fromisoformat(payload["now"])
    values = {**payload["values"], **namespaces(now, payload.get("commits"))}
    left = [MOST_TEXTS]

    def filled(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: filled(each, str(key)) for key, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        if not isinstance(value, str) or name in VERBATIM or "{{" not in value:
            return value
        left[0] -= 1
        if left[0] < 0:
            raise UserError(f"templates have more than {MOST_TEXTS} texts; use fewer")
        return compile_template(value).render(values, now=now)

    notification: dict[str, Any] = {}
    try:
        for template in payload["templates"]:
            notification |= filled(template)
    except UserError as error:
        return {"fault": str(error)}
    return {"notification": notification}
