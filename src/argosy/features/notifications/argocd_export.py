"""Export of notification settings for an Argo CD with its own notifications controller.

In: a namespace, recipients. Out: a ConfigMap, or a NotificationsConfiguration for the operator. Never: uses data that
this controller does not have: jobs, and the field manager of a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.errors import UserError
from argosy.features.notifications import names
from argosy.features.notifications.default_templates import shipped
from argosy.kube.objects import Manifest, dump

NOTEBOOKS: Final = ("notebook-validation-failed", "notebook-validation-succeeded")
DRIFT: Final = "on-drift"
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


def exported(namespace: str, recipients: Sequence[str] = (), *, is_operated: bool = False) -> Manifest:
    ours = shipped()
    triggers = {f"trigger.{name}": ours[f"trigger.{name}"] for name in NOTEBOOKS}
    templates = {f"template.{name}": ours[f"template.{name}"] for name in NOTEBOOKS}
    triggers[f"trigger.{DRIFT}"], templates["template.app-drift"] = DRIFT_TRIGGER, DRIFT_TEMPLATE
    wanted = {"subscriptions": _subscriptions(recipients)} if recipients else {}
    if is_operated:
        return {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "NotificationsConfiguration",
            "metadata": {"name": CR_NAME, "namespace": namespace},
            "spec": {"triggers": triggers, "templates": templates, **({"subscriptions": wanted} if wanted else {})},
        }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.SETTINGS, "namespace": namespace},
        "data": {**triggers, **templates, **wanted},
    }


def _subscriptions(recipients: Sequence[str]) -> str:
    for each in recipients:
        if not each.partition(":")[0].strip():
            raise UserError(
                f"invalid recipient {each!r}: no service; write SERVICE:RECIPIENT, such as slack:deliveries"
            )
    entry = {"recipients": list(recipients), "triggers": [*NOTEBOOKS, DRIFT]}
    return dump([entry])
