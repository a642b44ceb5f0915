"""Simulates the operator lifecycle manager: a Subscription becomes an InstallPlan, then an installed version.

In: the key of a Subscription, an InstallPlan or a ClusterServiceVersion. Out: the next of them, and statuses.
Never: reads a catalog: every package has one version, the requested one or v1.0.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.controller import Cache, Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators.constants import (
    BY,
    is_dying,
    is_played_by_others,
    letters,
    own_key,
    reference_to,
    told,
    unmarked,
)
from argosy.sandbox.simulators.fault_injection import NONE, Fault, Wishes, asked, read_wishes
from argosy.sandbox.simulators.openshift.constants import (
    CLUSTER_SERVICE_VERSION,
    EVERYWHERE,
    INSTALL_PLAN,
    OPERATOR_GROUP,
    SUBSCRIPTION,
)
from argosy.sandbox.simulators.timestamps import Moments, stamp
from argosy.sandbox.simulators.writes import create_once, keep_status, patient

Condition = dict[str, Any]
API: Final = "operators.coreos.com/v1alpha1"
NO_GROUP: Final = "no operator group found that is managing this namespace"
FAILING: Final = (Fault.CRASH_LOOP, Fault.OOM_KILLED, Fault.EXIT, Fault.EVICTED)
STUCK: Final = (Fault.NOT_READY, Fault.IMAGE_PULL, Fault.UNSCHEDULABLE)


def version_of(subscription: Manifest) -> str:
    spec = subscription["spec"]
    return str(spec.get("startingCSV") or f"{spec['name']}.v1.0.0")


def plan_name(subscription: Manifest) -> str:
    return f"install-{letters(subscription['metadata']['uid'] + '/' + version_of(subscription), 5)}"


class Subscriptions:
    name = "simulated-subscriptions"

    def __init__(self) -> None:
        self._going: set[ResourceKey] = set()
        self.watches = (
            Watch(SUBSCRIPTION, unmarked),
            Watch(INSTALL_PLAN, owner(SUBSCRIPTION)),
            Watch(CLUSTER_SERVICE_VERSION, self._waiting),
        )

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._going)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        self._going.discard(key)
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return
        place, version = live["metadata"]["namespace"], version_of(live)
        installed = context.cache.get(own_key(CLUSTER_SERVICE_VERSION, place, version))
        plan = context.cache.get(own_key(INSTALL_PLAN, place, plan_name(live)))
        if plan is None and _phase(installed) != "Succeeded":
            await create_once(plan_for(live), context.cluster)
        status = subscription_status(live, plan, installed, stamp(context.clock.now()))
        if status["state"] != "AtLatestKnown":
            self._going.add(key)
        await keep_status(live, status, context.cluster)


def plan_for(subscription: Manifest) -> Manifest:
    approval = subscription["spec"].get("installPlanApproval") or "Automatic"
    metadata = subscription["metadata"]
    reference = {**reference_to(subscription), "controller": False, "blockOwnerDeletion": False}
    return {
        "apiVersion": API,
        "kind": "InstallPlan",
        "metadata": {
            "name": plan_name(subscription), "namespace": metadata["namespace"], "ownerReferences": [reference],
        },
        "spec": {
            "approval": approval, "approved": approval == "Automatic", "generation": 1,
            "clusterServiceVersionNames": [version_of(subscription)],
        },
    }  # fmt: skip


def subscription_status(
    subscription: Manifest, plan: Manifest | None, version: Manifest | None, now: str
) -> dict[str, Any]:
    is_installed = _phase(version) == "Succeeded"
    catalogs = _condition("CatalogSourcesUnhealthy", "False", "AllCatalogSourcesHealthy", BY)
    conditions = [catalogs, *(_obstacle(plan) if not is_installed else ())]
    reference = {}
    if plan is not None:
        named = {"apiVersion": API, "kind": "InstallPlan", "name": plan["metadata"]["name"]}
        place = {"namespace": plan["metadata"]["namespace"], "uid": plan["metadata"]["uid"]}
        reference = {
            "installPlanRef": {**named, **place},
            "installplan": {**named, "uuid": plan["metadata"]["uid"]},
            "installPlanGeneration": 1,
        }
    known = subscription.get("status") or {}
    told_before = {each["type"]: each for each in known.get("conditions") or ()}
    dated = [_dated(each, told_before.get(each["type"]), now) for each in conditions]
    status = {
        "state": "AtLatestKnown" if is_installed else "UpgradePending",
        "currentCSV": version_of(subscription),
        "conditions": dated,
        **({"installedCSV": version_of(subscription)} if is_installed else {}),
        **reference,
    }
    has_changed = any(known.get(name) != value for name, value in status.items())
    return {**status, "lastUpdated": now if has_changed else known.get("lastUpdated") or now}


def _obstacle(plan: Manifest | None) -> list[Condition]:
    status = (plan or {}).get("status") or {}
    if status.get("phase") == "Failed":
        return [_condition("InstallPlanFailed", "True", "InstallCheckFailed", str(status.get("message") or ""))]
    reason = "RequiresApproval" if status.get("phase") == "RequiresApproval" else "Installing"
    return [_condition("InstallPlanPending", "True", reason, "")]


class InstallPlans:
    name = "simulated-installplans"

    def __init__(self) -> None:
        self._going: set[ResourceKey] = set()
        self.watches = (Watch(INSTALL_PLAN, unmarked), Watch(OPERATOR_GROUP, self._waiting))

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._going)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        self._going.discard(key)
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live) or _phase(live) == "Complete":
            return
        now, place = stamp(context.clock.now()), live["metadata"]["namespace"]
        began = (live.get("status") or {}).get("startTime") or now
        if not live["spec"].get("approved"):
            await keep_status(live, {"phase": "RequiresApproval"}, context.cluster)
            return
        if place != EVERYWHERE and not context.cache.list(OPERATOR_GROUP, namespace=place):
            self._going.add(key)
            status = {"phase": "Failed", "message": told(NO_GROUP), "startTime": began}
            await keep_status(live, status, context.cluster)
            return
        for name in live["spec"]["clusterServiceVersionNames"]:
            await create_once(version_named(name, place), context.cluster)
        done = _condition("Installed", "True", "", "")
        status = {
            "phase": "Complete", "message": None, "startTime": began,
            "conditions": [{**done, "lastTransitionTime": now}],
        }  # fmt: skip
        await keep_status(live, status, context.cluster)


def version_named(name: str, namespace: str) -> Manifest:
    package, _, version = name.partition(".")
    return {
        "apiVersion": API,
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "displayName": package,
            "version": version.removeprefix("v"),
            "description": told("No operator runs for this version"),
            "provider": {"name": BY},
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
        },
    }


class Versions:
    """ClusterServiceVersion phases: Pending, InstallReady, Installing, Succeeded."""

    name = "simulated-clusterserviceversions"

    def __init__(self) -> None:
        self._moments = Moments()
        self._going: set[ResourceKey] = set()
        self.watches = (Watch(CLUSTER_SERVICE_VERSION, unmarked), Watch(SUBSCRIPTION, self._waiting))

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._going)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._going.discard(key)
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return None
        wishes = _wishes(live, context.cache)
        now, uid = context.clock.now(), str(live["metadata"]["uid"])
        phase, reason, message = next_phase(live, wishes)
        known = live.get("status") or {}
        began = self._moments.read(uid, known["lastTransitionTime"]) if known.get("lastTransitionTime") else now
        installs = phase == "Succeeded" and _phase(live) == "Installing"
        wait = remaining_delay(began, wishes.ready_after, now) if installs else 0.0
        if wait > 0:
            self._going.add(key)
            return Requeue(wait)
        if phase not in ("Succeeded",):
            self._going.add(key)
        changed = phase != known.get("phase")
        since = self._moments.write(uid, now) if changed else known.get("lastTransitionTime")
        status = {"phase": phase, "reason": reason, "message": told(message), "lastTransitionTime": since}
        await keep_status(live, {**status, "lastUpdateTime": since}, context.cluster)
        return None


STEPS: Final = {
    "": ("Pending", "RequirementsUnknown", "requirements not yet checked"),
    "Pending": ("InstallReady", "AllRequirementsMet", "all requirements found, attempting install"),
    "InstallReady": ("Installing", "InstallSucceeded", "waiting for install components to report healthy"),
}
DONE: Final = ("Succeeded", "InstallSucceeded", "install strategy completed with no errors")


def next_phase(version: Manifest, wishes: Wishes) -> tuple[str, str, str]:
    phase = _phase(version)
    if phase in STEPS:
        return STEPS[phase]
    if wishes.fail in FAILING:
        return "Failed", "InstallCheckFailed", "install failed: the operator's deployment does not become available"
    if wishes.fail in STUCK:
        return "Installing", "InstallWaiting", "installing: waiting for deployment to become ready"
    return DONE


def _wishes(version: Manifest, cache: Cache) -> Wishes:
    """Read the settings of the version itself, or of the Subscription that installed it."""
    place, name = version["metadata"]["namespace"], version["metadata"]["name"]
    brought = [asked(each) for each in cache.list(SUBSCRIPTION, namespace=place) if version_of(each) == name]
    try:
        return read_wishes([asked(version), *brought])
    except UserError:
        return NONE


def _phase(manifest: Manifest | None) -> str:
    return str(((manifest or {}).get("status") or {}).get("phase") or "")


def _condition(type_: str, status: str, reason: str, message: str) -> Condition:
    said = {name: text for name, text in (("reason", reason), ("message", message)) if text}
    return {"type": type_, "status": status, **said}


def _dated(condition: Condition, before: Condition | None, now: str) -> Condition:
    same = before is not None and before["status"] == condition["status"]
    since = before.get("lastTransitionTime") if before is not None and same else None
    return {**condition, "lastTransitionTime": since or now}
