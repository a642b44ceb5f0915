"""Kinds, object names, setting keys and Event reasons of notifications.

In, out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

SETTINGS_CONFIG_MAP: Final = "argocd-notifications-cm"  # argo: the same two names
SETTINGS_SECRET: Final = "argocd-notifications-secret"
ARGOSY_CONFIG_MAP: Final = "argosy-cm"
HOSTS_SETTING: Final = "notifications.hosts"  # in argosy-cm: globs of hosts that may be contacted
# In argosy-cm: "true" lets namespaces have settings of their own.
SELF_SERVICE_SETTING: Final = "notifications.selfService"
# Namespaces of settings, unless the variant names one.
DEFAULT_NAMESPACES: Final = ("openshift-gitops", "argocd", "argosy")

COMPONENT: Final = "argosy-notifications"
SENT_REASON, FAILED_REASON, UNCLEAR_REASON = "NotificationSent", "NotificationFailed", "NotificationUnclear"
DELAYED_REASON: Final = "NotificationDelayed"  # failed for now, will be retried
