"""The names of annotations, labels and finalizers, each written once.

In, out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

HOOK: Final = "argocd.argoproj.io/hook"
HOOK_DELETE_POLICY: Final = "argocd.argoproj.io/hook-delete-policy"
HELM_HOOK: Final = "helm.sh/hook"
HOOK_FINALIZER: Final = "argocd.argoproj.io/hook-finalizer"
SYNC_WAVE: Final = "argocd.argoproj.io/sync-wave"
IGNORE_HEALTHCHECK: Final = "argocd.argoproj.io/ignore-healthcheck"
IGNORE_RESTART_POLICY: Final = "argocd.argoproj.io/ignore-restart-policy"
HORIZONTAL_POD_AUTOSCALER_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"
