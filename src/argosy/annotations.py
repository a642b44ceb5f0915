"""The names of annotations, labels and finalizers, each written once.

In, out: constants. Never: logic.
"""

from __future__ import annotations

from typing import Final

# Of a manifest: how it is synced and judged
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
OPERATION: Final = "argosy.dev/operation"  # which operation made a hook, so that none makes it twice
GATE: Final = "argosy.dev/gate"  # whether a sync waits for its health: block, report or ignore
GATE_TIMEOUT: Final = "argosy.dev/gate-timeout"  # and how long at most
SUPPRESS: Final = "argosy.dev/suppress"  # rules that are excused, with the reason: `AGY113 until the move`

# Of a live manifest: whose it is
TRACKING_ID: Final = "argocd.argoproj.io/tracking-id"
INSTALLATION_ID: Final = "argocd.argoproj.io/installation-id"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
HOOK_FINALIZER: Final = "argocd.argoproj.io/hook-finalizer"

# Of an Application
REFRESH: Final = "argocd.argoproj.io/refresh"
REFRESH_TIMESTAMP: Final = "argocd.argoproj.io/refresh-timestamp"
MANIFEST_GENERATE_PATHS: Final = "argocd.argoproj.io/manifest-generate-paths"
SKIP_RECONCILE: Final = "argocd.argoproj.io/skip-reconcile"
DELETION_APPROVED: Final = "argocd.argoproj.io/deletion-approved"
PROFILE: Final = "argosy.dev/profile"  # a checklist that it wants to be held against: data-bearing
ENGINE: Final = "argosy.dev/engine"  # who delivers it where an Argo CD runs, too: argosy or argocd
HOLD: Final = "argosy.dev/hold"  # JSON: who paused automated syncs, why, when, at which revision
FENCE: Final = "argosy.dev/fence"  # `7/controller-a`: who of several has it, and how often that has changed
MIGRATION_MANAGER: Final = "argocd.argoproj.io/client-side-apply-migration-manager"
RESOURCES_FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
PRE_DELETE_FINALIZER: Final = "pre-delete-finalizer.argocd.argoproj.io"
POST_DELETE_FINALIZER: Final = "post-delete-finalizer.argocd.argoproj.io"

# Of the Lease of a controller that shares the work with others
MEMBER: Final = "argosy.dev/member"  # a label
ROSTER: Final = "argosy.dev/roster"  # whom it takes for members: what of the work is its own follows from that

# Of notifications, on what they are about
SUBSCRIBE_PREFIX: Final = "notifications.argoproj.io/subscribe"
NOTIFIED: Final = "notified.notifications.argoproj.io"  # argo: what was sent to whom, JSON
NOTIFYING: Final = "argosy.dev/notifying"  # JSON: what is being sent, by whom and since when

# Of others
SECRET_TYPE: Final = "argocd.argoproj.io/secret-type"  # noqa: S105 - a label's name
HORIZONTAL_POD_AUTOSCALER_CONDITIONS: Final = "autoscaling.alpha.kubernetes.io/conditions"

# Of a NotebookValidationJob
NOTEBOOK_RUN: Final = "mlops.dev/run"  # on what a run makes: which run it is of
NOTIFICATION_TYPE: Final = "mlops.dev/notification-type"  # a label of Events about a result
PART_OF: Final = "app.kubernetes.io/part-of"
RE_RUN: Final = "mlops.dev/re-run"  # any text that was not there before asks for one more run
ON_SUCCESS: Final = "mlops.dev/on-success-trigger"  # a YAML list: what is done once it has succeeded
TRIGGER_STATUS: Final = "mlops.dev/trigger-status"  # JSON: what came of it
BLOCK_WAVE: Final = "mlops.dev/block-wave"  # the first wave that does not begin before it has succeeded
BLOCK_APPLICATION: Final = "mlops.dev/block-application"  # of whom, beside its own; else of all with its namespace
WAVE_COMPLETE: Final = "mlops.dev/wave-complete"  # its wave, once it has succeeded
WAVE_FAILED: Final = "mlops.dev/wave-failed"
COMPLETION_TIME: Final = "mlops.dev/completion-time"
FAILURE_TIME: Final = "mlops.dev/failure-time"
OBSERVED_GENERATION: Final = "mlops.dev/observed-generation"  # of which spec that is told
OBSERVED_REVISION: Final = "mlops.dev/observed-revision"  # and of which commit
NOTEBOOK_STATUS: Final = "mlops.dev/notebook-status"  # on an Application: JSON, how its notebooks are
NOTEBOOK_SUMMARY: Final = "mlops.dev/notebook-summary"  # the same in a sentence

# Of what notebooks trigger
TRIGGERED_BY: Final = "mlops.dev/triggered-by"  # marks of the triggers that were last carried out on it
RESTART_TIMESTAMP: Final = "mlops.dev/restart-timestamp"
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"  # k8s: of a Pod template: another value replaces its Pods

# Of the sandbox: what its simulators play, and what they are asked to play
SIMULATED: Final = "sandbox.argosy.dev/simulated"  # who made or plays this; only that one gives it a status
FAIL: Final = "sandbox.argosy.dev/fail"
FAIL_TIMES: Final = "sandbox.argosy.dev/fail-times"
READY_AFTER: Final = "sandbox.argosy.dev/ready-after"
METRICS: Final = "sandbox.argosy.dev/metrics"  # what an autoscaler measures: cpu=90,memory=1Gi
RUN: Final = "sandbox.argosy.dev/run"  # `process`: the Pod's commands really run, confined
NETWORK: Final = "sandbox.argosy.dev/network"  # `on`: a notebook asks for the network that the installation allows
RUN_FOR: Final = "sandbox.argosy.dev/run-for"
STOP_AFTER: Final = "sandbox.argosy.dev/stop-after"
NAMES: Final = "sandbox.argosy.dev/names"  # on a definition, `segments`: its objects may be called `model:latest`
ACTIONS: Final = "sandbox.argosy.dev/actions"  # on a definition: what is asked of its objects: instantiate=BuildRequest
START_BUILD: Final = "sandbox.argosy.dev/start-build"  # on a BuildConfig: any text; it is gone when the Build is there
BEFORE_BREAK: Final = "sandbox.argosy.dev/before-break"  # what `argosy demo break` found there, for `argosy demo fix`

FIELD_MANAGER: Final = "argocd-controller"  # argo: who owns what is applied, on the server's side or on the client's
