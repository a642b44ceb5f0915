"""Export of notification settings for an Argo CD with its own notifications controller.

In: a namespace, recipients. Out: a ConfigMap, or a NotificationsConfiguration for the operator. Never: uses data that
this controller does not have: jobs, and the field manager of a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.errors import UserError
from argosy.features.notifications import constants
from argosy.features.notifications.default_templates import load_bundled_entries
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.well_known_kinds import ARGOPROJ_API_VERSION

NOTEBOOK_TRIGGERS: Final = ("notebook-validation-failed", "notebook-validation-succeeded")
DRIFT_TRIGGER_NAME: Final = "on-drift"
CR_NAME: Final = "default-notifications-configuration"  # argo: the name that the operator reads
DRIFT_TRIGGER: Final = """\
- description: The live state drifted from Git; Git did not change.
  send: [app-drift]
  when: app.status.sync.status == 'OutOfSync' and app.status.operationState != nil
    and app.status.operationState.phase == 'Succeeded' and app.status.operationState.syncResult != nil
    and app.status.sync.revision == app.status.operationState.syncResult.revision
"""
DRIFT_TEMPLATE: Final = """\
message: |
  Application {{.app.metadata.name}} drifted from {{.app.status.sync.revision}}: Git did not change.{{range .app.status.resources}}{{if eq (toString .status) "OutOfSync"}}
  {{.kind}} {{.namespace}}/{{.name}}{{end}}{{end}}
email: {subject: "Application {{.app.metadata.name}} drifted from Git"}
teams: {title: "Application {{.app.metadata.name}} drifted from Git"}
"""  # noqa: E501 - a line break would be one in the message


def build_export(namespace: str, recipients: Sequence[str] = (), *, is_operated: bool = False) -> Manifest:
    bundled = load_bundled_entries()
    triggers = {f"trigger.{name}": bundled[f"trigger.{name}"] for name in NOTEBOOK_TRIGGERS}
    templates = {f"template.{name}": bundled[f"template.{name}"] for name in NOTEBOOK_TRIGGERS}
    triggers[f"trigger.{DRIFT_TRIGGER_NAME}"], templates["template.app-drift"] = DRIFT_TRIGGER, DRIFT_TEMPLATE
    settings = {"subscriptions": _render_subscriptions(recipients)} if recipients else {}
    if is_operated:
        return {
            "apiVersion": ARGOPROJ_API_VERSION,
            "kind": "NotificationsConfiguration",
            "metadata": {"name": CR_NAME, "namespace": namespace},
            "spec": {"triggers": triggers, "templates": templates, **({"subscriptions": settings} if settings else {})},
        }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": constants.SETTINGS_CONFIG_MAP, "namespace": namespace},
        "data": {**triggers, **templates, **settings},
    }


def _render_subscriptions(recipients: Sequence[str]) -> str:
    for recipient in recipients:
        if not recipient.partition(":")[0].strip():
            raise UserError(
                f"invalid recipient {recipient!r}: no service; write SERVICE:RECIPIENT, such as slack:deliveries"
            )
    entry = {"recipients": list(recipients), "triggers": [*NOTEBOOK_TRIGGERS, DRIFT_TRIGGER_NAME]}
    return dump_yaml([entry])
