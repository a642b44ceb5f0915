"""Names of all annotations, labels and finalizers, each defined once.

In: nothing. Out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

# On a manifest: how it is synced and how its health is assessed
HOOK: Final = "argocd.argoproj.io/hook"
HOOK_DELETE_POLICY: Final = "argocd.argoproj.io/hook-delete-policy"
SYNC_WAVE: Final = "argocd.argoproj.io/sync-wave"
SYNC_OPTIONS: Final = "argocd.argoproj.io/sync-options"
COMPARE_OPTIONS: Final = "argocd.argoproj.io/compare-options"
IGNORE_HEALTHCHECK: Final = "argocd.argoproj.io/ignore-healthcheck"
IGNORE_RESOURCE_UPDATES: Final = "argocd.argoproj.io/ignore-resource-updates"
IGNORE_RESTART_POLICY: Final = "argocd.argoproj.io/ignore-restart-policy"
LINK_PREFIX: Final = "link.argocd.argoproj.io/"
IGNORE_DEFAULT_LINKS: Final = "argocd.argoproj.io/ignore-default-links"
HELM_HOOK: Final = "helm.sh/hook"
HELM_HOOK_DELETE_POLICY: Final = "helm.sh/hook-delete-policy"
HELM_HOOK_WEIGHT: Final = "helm.sh/hook-weight"
HELM_RESOURCE_POLICY: Final = "helm.sh/resource-policy"
OPERATION: Final = "argosy.dev/operation"  # the operation that created a hook, so that it is not created twice
GATE: Final = "argosy.dev/gate"  # how a sync treats the object's health: block, report or ignore
GATE_TIMEOUT: Final = "argosy.dev/gate-timeout"  # how long a sync waits at most
SUPPRESS: Final = "argosy.dev/suppress"  # suppressed rules, with the reason: `AGY113 until the move`

# On a live manifest: which Application it belongs to
TRACKING_ID: Final = "argocd.argoproj.io/tracking-id"
INSTALLATION_ID: Final = "argocd.argoproj.io/installation-id"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
HOOK_FINALIZER: Final = "argocd.argoproj.io/hook-finalizer"

# On an Application
REFRESH: Final = "argocd.argoproj.io/refresh"
REFRESH_TIMESTAMP: Final = "argocd.argoproj.io/refresh-timestamp"
MANIFEST_GENERATE_PATHS: Final = "argocd.argoproj.io/manifest-generate-paths"
MANAGED_BY_URL: Final = "argocd.argoproj.io/managed-by-url"  # the page of the installation that delivers it
SKIP_RECONCILE: Final = "argocd.argoproj.io/skip-reconcile"
DELETION_APPROVED: Final = "argocd.argoproj.io/deletion-approved"
PROFILE: Final = "argosy.dev/profile"  # the checklist that `argosy check` applies: data-bearing
ENGINE: Final = "argosy.dev/engine"  # which engine delivers it if Argo CD also runs: argosy or argocd
HOLD: Final = "argosy.dev/hold"  # JSON: who paused automated syncs, why, when, at which revision
FENCE: Final = "argosy.dev/fence"  # `7/controller-a`: number of ownership changes, and the owning replica
MIGRATION_MANAGER: Final = "argocd.argoproj.io/client-side-apply-migration-manager"
RESOURCES_FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
PRE_DELETE_FINALIZER: Final = "pre-delete-finalizer.argocd.argoproj.io"
POST_DELETE_FINALIZER: Final = "post-delete-finalizer.argocd.argoproj.io"

# On the Lease of a controller replica
MEMBER: Final = "argosy.dev/member"  # a label
ROSTER: Final = "argosy.dev/roster"  # the members that this replica knows; its share of the work follows from them

# On the subject of a notification
SUBSCRIBE_PREFIX: Final = "notifications.argoproj.io/subscribe"
SUBSCRIPTIONS: Final = "notifications.argoproj.io/subscriptions"  # argo: YAML; a key may begin with it
NOTIFIED: Final = "notified.notifications.argoproj.io"  # argo: JSON: the notifications sent, and their recipients
NOTIFYING: Final = "argosy.dev/notifying"  # JSON: the notifications being sent, by which replica and since when

# On other objects
SECRET_TYPE: Final = "argocd.argoproj.io/secret-type"
HORIZONTAL_POD_AUTOSCALER_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"

# On a NotebookValidationJob
NOTEBOOK_RUN: Final = "mlops.dev/run"  # on objects that a run creates: the run
NOTIFICATION_TYPE: Final = "mlops.dev/notification-type"  # a label of Events about a result
PART_OF: Final = "app.kubernetes.io/part-of"
RE_RUN: Final = "mlops.dev/re-run"  # any new value requests one more run
ON_SUCCESS: Final = "mlops.dev/on-success-trigger"  # a YAML list: actions after the run succeeded
TRIGGER_STATUS: Final = "mlops.dev/trigger-status"  # JSON: the results of these actions
BLOCK_WAVE: Final = "mlops.dev/block-wave"  # the first wave that waits until the run succeeded
BLOCK_APPLICATION: Final = "mlops.dev/block-application"  # the Application to block; else all in its namespace
WAVE_COMPLETE: Final = "mlops.dev/wave-complete"  # its wave, after the run succeeded
WAVE_FAILED: Final = "mlops.dev/wave-failed"
COMPLETION_TIME: Final = "mlops.dev/completion-time"
FAILURE_TIME: Final = "mlops.dev/failure-time"
OBSERVED_GENERATION: Final = "mlops.dev/observed-generation"  # the generation that the result is for
OBSERVED_REVISION: Final = "mlops.dev/observed-revision"  # the commit that the result is for
NOTEBOOK_STATUS: Final = "mlops.dev/notebook-status"  # on an Application: JSON, the state of its notebooks
NOTEBOOK_SUMMARY: Final = "mlops.dev/notebook-summary"  # the same state as one sentence

# On objects that notebooks trigger
TRIGGERED_BY: Final = "mlops.dev/triggered-by"  # ids of the triggers that last changed the object
RESTART_TIMESTAMP: Final = "mlops.dev/restart-timestamp"
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"  # k8s: on a Pod template: a new value replaces its Pods

# In the sandbox: which simulator handles an object, and how it shall behave
SIMULATED: Final = "sandbox.argosy.dev/simulated"  # the simulator that owns it; only that one writes its status
FAIL: Final = "sandbox.argosy.dev/fail"
FAIL_TIMES: Final = "sandbox.argosy.dev/fail-times"
READY_AFTER: Final = "sandbox.argosy.dev/ready-after"
METRICS: Final = "sandbox.argosy.dev/metrics"  # the metrics that an autoscaler reads: cpu=90,memory=1Gi
RUN: Final = "sandbox.argosy.dev/run"  # `process`: the Pod's commands run as confined processes
NETWORK: Final = "sandbox.argosy.dev/network"  # `on`: a notebook requests the network that the installation allows
RUN_FOR: Final = "sandbox.argosy.dev/run-for"
STOP_AFTER: Final = "sandbox.argosy.dev/stop-after"
NAMES: Final = "sandbox.argosy.dev/names"  # on a CRD, `segments`: its objects may have names such as `model:latest`
ACTIONS: Final = "sandbox.argosy.dev/actions"  # on a CRD: subresources that accept a POST: instantiate=BuildRequest
START_BUILD: Final = "sandbox.argosy.dev/start-build"  # on a BuildConfig: any text; removed once the Build exists
BEFORE_BREAK: Final = "sandbox.argosy.dev/before-break"  # state saved by `argosy demo break` for `argosy demo fix`

FIELD_MANAGER: Final = "argocd-controller"  # argo: the field manager of server-side and client-side applies
