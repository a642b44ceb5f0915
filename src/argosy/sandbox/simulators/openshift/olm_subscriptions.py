"""Simulates the operator lifecycle manager: a Subscription becomes an InstallPlan, then an installed version.

In: the key of a Subscription, an InstallPlan or a ClusterServiceVersion. Out: the next of them, and statuses.
Never: reads a catalog: every package has one version, the requested one or v1.0.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp, remaining_delay
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION
from argosy.sandbox.simulators.conditional_writes import create_if_absent, requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.openshift.openshift_kind_and_component_names import (
    GLOBAL_OPERATORS_NAMESPACE,
    INSTALL_PLAN,
)
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    append_simulated_note,
    build_key,
    build_owner_reference,
    enqueue_if_unmarked,
    hash_to_name_suffix,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.simulation_annotations import (
    DEFAULT_SETTINGS,
    InjectedFault,
    SimulationSettings,
    read_simulation_annotations,
    read_simulation_settings,
)
from argosy.sandbox.simulators.timestamps_and_durations import ExactTimestamps

OlmCondition = dict[str, Any]
OLM_API_VERSION: Final = "operators.coreos.com/v1alpha1"
NO_OPERATOR_GROUP_MESSAGE: Final = "no operator group found that is managing this namespace"
FAULTS_THAT_FAIL_INSTALL: Final = (
    InjectedFault.CRASH_LOOP,
    InjectedFault.OOM_KILLED,
    InjectedFault.EXIT,
    InjectedFault.EVICTED,
)
FAULTS_THAT_BLOCK_INSTALL: Final = (InjectedFault.NOT_READY, InjectedFault.IMAGE_PULL, InjectedFault.UNSCHEDULABLE)


def read_version_name(subscription: Manifest) -> str:
    spec = subscription["spec"]
    return str(spec.get("startingCSV") or f"{spec['name']}.v1.0.0")


def build_plan_name(subscription: Manifest) -> str:
    return f"install-{hash_to_name_suffix(subscription['metadata']['uid'] + '/' + read_version_name(subscription), 5)}"


class SubscriptionController:
    name = "simulated-subscriptions"

    def __init__(self) -> None:
        self._unfinished: set[ResourceKey] = set()
        self.watches = (
            Watch(SUBSCRIPTION, enqueue_if_unmarked),
            Watch(INSTALL_PLAN, map_to_owner(SUBSCRIPTION)),
            Watch(CLUSTER_SERVICE_VERSION, self._enqueue_unfinished),
        )

    def _enqueue_unfinished(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._unfinished)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        self._unfinished.discard(key)
        subscription = context.cache.get(key)
        if subscription is None or is_being_deleted(subscription) or is_simulated_by_other_addon(subscription):
            return
        namespace, version = subscription["metadata"]["namespace"], read_version_name(subscription)
        installed = context.cache.get(build_key(CLUSTER_SERVICE_VERSION, namespace, version))
        plan = context.cache.get(build_key(INSTALL_PLAN, namespace, build_plan_name(subscription)))
        if plan is None and _read_phase(installed) != "Succeeded":
            await create_if_absent(build_install_plan(subscription), context.cluster)
        status = build_subscription_status(subscription, plan, installed, format_timestamp(context.clock.now()))
        if status["state"] != "AtLatestKnown":
            self._unfinished.add(key)
        await update_status_if_changed(subscription, status, context.cluster)


def build_install_plan(subscription: Manifest) -> Manifest:
    approval = subscription["spec"].get("installPlanApproval") or "Automatic"
    metadata = subscription["metadata"]
    reference = {**build_owner_reference(subscription), "controller": False, "blockOwnerDeletion": False}
    return {
        "apiVersion": OLM_API_VERSION,
        "kind": "InstallPlan",
        "metadata": {
            "name": build_plan_name(subscription), "namespace": metadata["namespace"], "ownerReferences": [reference],
        },
        "spec": {
            "approval": approval, "approved": approval == "Automatic", "generation": 1,
            "clusterServiceVersionNames": [read_version_name(subscription)],
        },
    }  # fmt: skip


def build_subscription_status(
    subscription: Manifest, plan: Manifest | None, version: Manifest | None, now: str
) -> dict[str, Any]:
    is_installed = _read_phase(version) == "Succeeded"
    catalog_condition = _build_condition("CatalogSourcesUnhealthy", "False", "AllCatalogSourcesHealthy", SIMULATED_NOTE)
    conditions = [catalog_condition, *(_build_plan_conditions(plan) if not is_installed else ())]
    plan_fields = {}
    if plan is not None:
        plan_name_fields = {"apiVersion": OLM_API_VERSION, "kind": "InstallPlan", "name": plan["metadata"]["name"]}
        plan_identity = {"namespace": plan["metadata"]["namespace"], "uid": plan["metadata"]["uid"]}
        plan_fields = {
            "installPlanRef": {**plan_name_fields, **plan_identity},
            "installplan": {**plan_name_fields, "uuid": plan["metadata"]["uid"]},
            "installPlanGeneration": 1,
        }
    previous = subscription.get("status") or {}
    previous_conditions = {condition["type"]: condition for condition in previous.get("conditions") or ()}
    dated_conditions = [
        _add_transition_time(condition, previous_conditions.get(condition["type"]), now) for condition in conditions
    ]
    status = {
        "state": "AtLatestKnown" if is_installed else "UpgradePending",
        "currentCSV": read_version_name(subscription),
        "conditions": dated_conditions,
        **({"installedCSV": read_version_name(subscription)} if is_installed else {}),
        **plan_fields,
    }
    has_changed = any(previous.get(name) != value for name, value in status.items())
    return {**status, "lastUpdated": now if has_changed else previous.get("lastUpdated") or now}


def _build_plan_conditions(plan: Manifest | None) -> list[OlmCondition]:
    status = (plan or {}).get("status") or {}
    if status.get("phase") == "Failed":
        return [_build_condition("InstallPlanFailed", "True", "InstallCheckFailed", str(status.get("message") or ""))]
    reason = "RequiresApproval" if status.get("phase") == "RequiresApproval" else "Installing"
    return [_build_condition("InstallPlanPending", "True", reason, "")]


class InstallPlanController:
    name = "simulated-installplans"

    def __init__(self) -> None:
        self._failed: set[ResourceKey] = set()
        self.watches = (Watch(INSTALL_PLAN, enqueue_if_unmarked), Watch(OPERATOR_GROUP, self._enqueue_failed))

    def _enqueue_failed(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._failed)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        self._failed.discard(key)
        plan = context.cache.get(key)
        if (
            plan is None
            or is_being_deleted(plan)
            or is_simulated_by_other_addon(plan)
            or _read_phase(plan) == "Complete"
        ):
            return
        now, namespace = format_timestamp(context.clock.now()), plan["metadata"]["namespace"]
        started_at = (plan.get("status") or {}).get("startTime") or now
        if not plan["spec"].get("approved"):
            await update_status_if_changed(plan, {"phase": "RequiresApproval"}, context.cluster)
            return
        if namespace != GLOBAL_OPERATORS_NAMESPACE and not context.cache.list(OPERATOR_GROUP, namespace=namespace):
            self._failed.add(key)
            status = {
                "phase": "Failed",
                "message": append_simulated_note(NO_OPERATOR_GROUP_MESSAGE),
                "startTime": started_at,
            }
            await update_status_if_changed(plan, status, context.cluster)
            return
        for name in plan["spec"]["clusterServiceVersionNames"]:
            await create_if_absent(build_version(name, namespace), context.cluster)
        installed_condition = _build_condition("Installed", "True", "", "")
        status = {
            "phase": "Complete", "message": None, "startTime": started_at,
            "conditions": [{**installed_condition, "lastTransitionTime": now}],
        }  # fmt: skip
        await update_status_if_changed(plan, status, context.cluster)


def build_version(name: str, namespace: str) -> Manifest:
    package, _, version = name.partition(".")
    return {
        "apiVersion": OLM_API_VERSION,
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "displayName": package,
            "version": version.removeprefix("v"),
            "description": append_simulated_note("No operator runs for this version"),
            "provider": {"name": SIMULATED_NOTE},
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    }


class ClusterServiceVersionController:
    """ClusterServiceVersion phases: Pending, InstallReady, Installing, Succeeded."""

    name = "simulated-clusterserviceversions"

    def __init__(self) -> None:
        self._timestamps = ExactTimestamps()
        self._unfinished: set[ResourceKey] = set()
        self.watches = (
            Watch(CLUSTER_SERVICE_VERSION, enqueue_if_unmarked),
            Watch(SUBSCRIPTION, self._enqueue_unfinished),
        )

    def _enqueue_unfinished(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._unfinished)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._unfinished.discard(key)
        version = context.cache.get(key)
        if version is None or is_being_deleted(version) or is_simulated_by_other_addon(version):
            return None
        settings = _read_settings(version, context.cache)
        now, uid = context.clock.now(), str(version["metadata"]["uid"])
        phase, reason, message = compute_next_phase(version, settings)
        previous = version.get("status") or {}
        phase_since = (
            self._timestamps.parse_exact(uid, previous["lastTransitionTime"])
            if previous.get("lastTransitionTime")
            else now
        )
        is_finishing = phase == "Succeeded" and _read_phase(version) == "Installing"
        wait = remaining_delay(phase_since, settings.ready_after, now) if is_finishing else 0.0
        if wait > 0:
            self._unfinished.add(key)
            return Requeue(wait)
        if phase not in ("Succeeded",):
            self._unfinished.add(key)
        has_phase_changed = phase != previous.get("phase")
        transitioned_at = (
            self._timestamps.format_and_remember(uid, now) if has_phase_changed else previous.get("lastTransitionTime")
        )
        status = {
            "phase": phase,
            "reason": reason,
            "message": append_simulated_note(message),
            "lastTransitionTime": transitioned_at,
        }
        await update_status_if_changed(version, {**status, "lastUpdateTime": transitioned_at}, context.cluster)
        return None


NEXT_PHASES: Final = {
    "": ("Pending", "RequirementsUnknown", "requirements not yet checked"),
    "Pending": ("InstallReady", "AllRequirementsMet", "all requirements found, attempting install"),
    "InstallReady": ("Installing", "InstallSucceeded", "waiting for install components to report healthy"),
}
SUCCEEDED_PHASE: Final = ("Succeeded", "InstallSucceeded", "install strategy completed with no errors")


def compute_next_phase(version: Manifest, settings: SimulationSettings) -> tuple[str, str, str]:
    phase = _read_phase(version)
    if phase in NEXT_PHASES:
        return NEXT_PHASES[phase]
    if settings.fault in FAULTS_THAT_FAIL_INSTALL:
        return "Failed", "InstallCheckFailed", "install failed: the operator's deployment does not become available"
    if settings.fault in FAULTS_THAT_BLOCK_INSTALL:
        return "Installing", "InstallWaiting", "installing: waiting for deployment to become ready"
    return SUCCEEDED_PHASE


def _read_settings(version: Manifest, cache: InformerCache) -> SimulationSettings:
    """Read the settings of the version itself, or of the Subscription that installed it."""
    namespace, name = version["metadata"]["namespace"], version["metadata"]["name"]
    subscription_annotations = [
        read_simulation_annotations(subscription)
        for subscription in cache.list(SUBSCRIPTION, namespace=namespace)
        if read_version_name(subscription) == name
    ]
    try:
        return read_simulation_settings([read_simulation_annotations(version), *subscription_annotations])
    except UserError:
        return DEFAULT_SETTINGS


def _read_phase(manifest: Manifest | None) -> str:
    return str(((manifest or {}).get("status") or {}).get("phase") or "")


def _build_condition(type_: str, status: str, reason: str, message: str) -> OlmCondition:
    reason_fields = {name: text for name, text in (("reason", reason), ("message", message)) if text}
    return {"type": type_, "status": status, **reason_fields}


def _add_transition_time(condition: OlmCondition, previous: OlmCondition | None, now: str) -> OlmCondition:
    is_unchanged = previous is not None and previous["status"] == condition["status"]
    transitioned_at = previous.get("lastTransitionTime") if previous is not None and is_unchanged else None
    return {**condition, "lastTransitionTime": transitioned_at or now}
