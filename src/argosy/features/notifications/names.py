"""Kinds, object names, setting keys and Event reasons of notifications.

In, out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.names import GroupKind

APPLICATION: Final = GroupKind("argoproj.io", "Application")
JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
CONFIG_MAP: Final = GroupKind("", "ConfigMap")
SECRET: Final = GroupKind("", "Secret")

SETTINGS: Final = "argocd-notifications-cm"  # argo: the same two names
SECRETS: Final = "argocd-notifications-secret"
OWN_SETTINGS: Final = "argosy-cm"
HOSTS: Final = "notifications.hosts"  # in argosy-cm: globs of hosts that may be contacted
SELF_SERVICE: Final = "notifications.selfService"  # in argosy-cm: "true" lets namespaces have settings of their own
CONTROL: Final = ("openshift-gitops", "argocd", "argosy")  # namespaces of settings, unless the variant names one

COMPONENT: Final = "argosy-notifications"
SENT, FAILED, UNCLEAR = "NotificationSent", "NotificationFailed", "NotificationUnclear"
DELAYED: Final = "NotificationDelayed"  # failed for now, will be retried
