"""Runs the installation checks at the head of a diagnosis: cluster, settings owner, controllers, confinement.

In: the state of an installation. Out: InstallationCheck values. Never: writes.
"""

from __future__ import annotations

import asyncio
import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from argosy.errors import ArgosyError
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.installation_state import CONTROLLER
from argosy.features.setup.openshift_gitops_preparation import OPERATOR_NAME, OPERATOR_NAMESPACES
from argosy.gitops.analysis.live_view import InstallationView, parse_timestamp, render_duration
from argosy.gitops.application import Application
from argosy.gitops.coexistence.argocd_settings_location import SETTINGS_CONFIG_MAP_NAME
from argosy.gitops.policy.application_delivery_engine_detection import POD_KIND, Deliverer, is_simulated
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.isolation.confinement_requirement import REFUSAL
from argosy.kube.client import VersionedCluster
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import CLUSTER_SERVICE_VERSION, DEPLOYMENT, STATEFUL_SET

ARGOCD_COMPONENTS: Final = (CONTROLLER, "repo-server", "server")
DEFAULT_NAME_PREFIX: Final = "argocd"
MAX_STATUS_AGE_SECONDS: Final = 900.0
MAX_LEASE_AGE_SECONDS: Final = 120.0  # allows for clock skew
START_ADVICE: Final = "start argosy controller"
_VERSION_TAG_PATTERN: Final = re.compile(r":v?(\d[\w.+-]*)$")


class CheckState(enum.StrEnum):
    OK = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class InstallationCheck:
    name: str
    mark: CheckState
    text: str

    def to_wire(self) -> dict[str, str]:
        return {"name": self.name, "state": self.mark.value, "text": self.text}


async def run_installation_checks(
    reads: OptionalReads, view: InstallationView, now: datetime, apps: Sequence[Application]
) -> list[InstallationCheck]:
    workloads, version, product = await asyncio.gather(
        _list_argocd_workloads(reads, view), _fetch_cluster_version(reads), _find_operator_version(reads, view)
    )
    return [
        InstallationCheck("cluster", CheckState.OK, f"cluster reachable{f' ({version})' if version else ''}"),
        _check_settings_owner(view, workloads),
        _check_controllers(view, workloads, product, now, apps),
        *_check_coexistence(view, apps),
        *_check_confinement(apps),
    ]


async def _fetch_cluster_version(reads: OptionalReads) -> str:
    try:
        version = await reads.cluster.version() if isinstance(reads.cluster, VersionedCluster) else ""
    except ArgosyError:
        return ""
    return version.removeprefix("v").partition("+")[0]


async def _find_operator_version(reads: OptionalReads, view: InstallationView) -> str:
    """Find the product version of an operator installation, whose images may have no version tag."""
    if not view.owner:
        return ""
    for namespace in (view.namespace, *OPERATOR_NAMESPACES):
        for service_version in await reads.list_kind(CLUSTER_SERVICE_VERSION, namespace):
            if str(service_version["metadata"]["name"]).startswith(OPERATOR_NAME):
                return f"OpenShift GitOps {as_mapping(service_version.get('spec')).get('version') or ''}".strip()
    return ""


async def _list_argocd_workloads(reads: OptionalReads, view: InstallationView) -> list[Manifest]:
    """argo: components are named after the ArgoCD resource, or `argocd-` without one."""
    listings = await asyncio.gather(*(reads.list_kind(kind, view.namespace) for kind in (STATEFUL_SET, DEPLOYMENT)))
    names = {f"{view.owner or DEFAULT_NAME_PREFIX}-{part}" for part in ARGOCD_COMPONENTS}
    return [workload for listing in listings for workload in listing if workload["metadata"]["name"] in names]


def _check_settings_owner(view: InstallationView, workloads: Sequence[Manifest]) -> InstallationCheck:
    if view.owner:
        text = f"ArgoCD CR {view.namespace}/{view.owner} is the owner of {SETTINGS_CONFIG_MAP_NAME}"
        return InstallationCheck("owner", CheckState.OK, text)
    if view.data is not None:
        owner_text = "argosy's own" if view.is_delivered_by_argosy else "not managed by an operator"
        return InstallationCheck(
            "owner",
            CheckState.OK,
            f"{SETTINGS_CONFIG_MAP_NAME} in {view.namespace} is {owner_text}: change settings there",
        )
    if view.has_configmap:
        return InstallationCheck(
            "owner", CheckState.UNKNOWN, f"{SETTINGS_CONFIG_MAP_NAME} in {view.namespace} cannot be read: who owns it?"
        )
    if workloads or view.has_argocd:  # argo: none of its parts starts without
        text = (
            f"there is no {SETTINGS_CONFIG_MAP_NAME} in {view.namespace}, and Argo CD needs one: apply its "
            "manifests again"
        )
        return InstallationCheck("owner", CheckState.BAD, text)
    if view.has_argocd is None:
        return InstallationCheck(
            "owner",
            CheckState.UNKNOWN,
            f"there is no {SETTINGS_CONFIG_MAP_NAME} in {view.namespace}: is there an Argo CD?",
        )
    return InstallationCheck(
        "owner", CheckState.OK, f"no {SETTINGS_CONFIG_MAP_NAME} in {view.namespace}, and no Argo CD: defaults apply"
    )


def _check_controllers(
    view: InstallationView, workloads: Sequence[Manifest], product: str, now: datetime, apps: Sequence[Application]
) -> InstallationCheck:
    """Check the readiness of the components, else the time of the last status update."""
    not_ready = [workload for workload in workloads if not _has_ready_replicas(workload)]
    if not_ready:
        names = ", ".join(f"{workload['kind']}/{workload['metadata']['name']}" for workload in not_ready)
        return InstallationCheck("controllers", CheckState.BAD, f"Argo CD is not running whole: {names} is not ready")
    if view.is_delivered_by_argosy:
        renewed = parse_timestamp(view.renewed_at)
        silent_seconds = (now - renewed).total_seconds() if renewed else 0.0
        if silent_seconds > MAX_LEASE_AGE_SECONDS:
            text = f"argosy's controller gave its last sign {render_duration(silent_seconds)} ago: {START_ADVICE}"
            return InstallationCheck("controllers", CheckState.BAD, text)
        # It renews its Lease several times in that time.
        if silent_seconds > (view.lease_seconds or MAX_LEASE_AGE_SECONDS):
            text = (
                f"no sign of life from argosy's controller for {render_duration(silent_seconds)}: does it run? "
                f"Else {START_ADVICE}"
            )
            return InstallationCheck("controllers", CheckState.UNKNOWN, text)
        return InstallationCheck("controllers", CheckState.OK, "argosy delivers")
    if any(CONTROLLER in workload["metadata"]["name"] and not is_simulated(workload) for workload in workloads):
        version = _find_argocd_version(workloads)
        running_text = " of ".join(filter(None, (f"Argo CD {version}".strip(), product)))
        return InstallationCheck("controllers", CheckState.OK, f"{running_text} runs")
    return _check_missing_controller(view, workloads, apps) or _check_controller_activity(view, now, apps)


def _check_missing_controller(
    view: InstallationView, workloads: Sequence[Manifest], apps: Sequence[Application]
) -> InstallationCheck | None:
    """Return a failed check if no controller delivers for certain; None if one runs or may be invisible."""
    if (
        view.has_argosy
        or not view.can_read_leases
        or not view.engines.is_known
        or view.engines.list_watching_controllers(view.namespace)
    ):
        return None
    has_stand_in = any(is_simulated(item) for item in workloads)
    is_reconciled = any(item.status.get("reconciledAt") for item in apps)
    if is_reconciled and not view.has_released_lease and not has_stand_in:
        return None  # a controller without a Lease in this namespace may have written the status
    reason = (
        "the Argo CD here is simulated, and no argosy controller runs"
        if has_stand_in
        else "no argosy controller and no Argo CD runs"
    )
    return InstallationCheck("controllers", CheckState.BAD, f"no engine delivers: {reason}; {START_ADVICE}")


def _check_controller_activity(view: InstallationView, now: datetime, apps: Sequence[Application]) -> InstallationCheck:
    """Check the last status update, also if only labels indicate an Argo CD controller."""
    engine_names = view.engines.list_watching_controllers(view.namespace)
    labelled = f"{', '.join(engine_names)} has the labels of an Argo CD's controller" if engine_names else ""
    observes = f"{labelled}, so that argosy only observes" if engine_names and view.has_argosy else labelled
    times = [time for item in apps if (time := parse_timestamp(str(item.status.get("reconciledAt") or "")))]
    if not times:
        text = f"{observes}; whether it works" if engine_names else "whether a controller runs"
        return InstallationCheck("controllers", CheckState.UNKNOWN, f"{text} cannot be seen")
    silent_seconds = (now - max(times)).total_seconds()
    if silent_seconds > MAX_STATUS_AGE_SECONDS:
        text = f"no Application was looked at for {render_duration(silent_seconds)}"
        problem = f"{observes}, but {text}" if engine_names else f"{text}: does a controller run?"
        return InstallationCheck("controllers", CheckState.BAD, problem)
    if all(item.startswith(f"{POD_KIND} ") for item in engine_names) and engine_names:
        return InstallationCheck(
            "controllers", CheckState.UNKNOWN, f"{observes}, but there is no Argo CD around it: whose is it?"
        )
    text = f"{observes} " if engine_names else "a controller runs "
    return InstallationCheck("controllers", CheckState.OK, f"{text}(last sign {render_duration(silent_seconds)} ago)")


def _check_coexistence(view: InstallationView, apps: Sequence[Application]) -> list[InstallationCheck]:
    """If argosy and Argo CD both run: count what argosy delivers, and report what both deliver."""
    if not view.has_argosy or not view.engines.controllers:
        return []
    deliverers = [view.engines.find_deliverer(app.annotations, app.namespace) for app in apps]
    argosy_count, both_count = sum(deliverer.is_argosy for deliverer in deliverers), deliverers.count(Deliverer.BOTH)
    is_near = bool(view.engines.list_watching_controllers(view.namespace))
    summary = (
        "argosy runs beside it, and delivers" if is_near else f"{view.engines.describe_for_namespace(view.namespace)},"
    )
    summary = f"{summary} {argosy_count} of {len(apps)} Applications"
    if both_count:
        names = ", ".join(app.name for app, deliverer in zip(apps, deliverers) if deliverer is Deliverer.BOTH)
        return [
            InstallationCheck(
                "beside", CheckState.BAD, f"{summary}; both deliver {names}: argosy app adopt, or hand-back"
            )
        ]
    return [InstallationCheck("beside", CheckState.OK, summary)]


def _check_confinement(apps: Sequence[Application]) -> list[InstallationCheck]:
    """Return a failed check if the controller refuses untrusted code because its node cannot confine it."""
    refused = {app.name: message for app in apps for message in _list_messages(app) if REFUSAL in message}
    if not refused:
        return []
    names, (sentence, *_) = ", ".join(sorted(refused)), refused.values()
    text = f"argosy's controller refuses untrusted code of {names}: {sentence[sentence.index(REFUSAL) :]}"
    return [InstallationCheck("confinement", CheckState.BAD, text)]


def _list_messages(app: Application) -> list[str]:
    health = (as_mapping(resource.get("health")) for resource in as_mappings(app.status.get("resources")))
    conditions = (*as_mappings(app.status.get("conditions")), *health)
    return [str(condition.get("message") or "") for condition in conditions]


def _has_ready_replicas(workload: Manifest) -> bool:
    replicas = as_mapping(workload.get("spec")).get("replicas", 1)
    return int(as_mapping(workload.get("status")).get("readyReplicas") or 0) >= int(replicas or 0)


def _find_argocd_version(workloads: Sequence[Manifest]) -> str:
    for workload in workloads:
        template = as_mapping(as_mapping(as_mapping(workload.get("spec")).get("template")).get("spec"))
        for container in as_mappings(template.get("containers")):
            if match := _VERSION_TAG_PATTERN.search(str(container.get("image") or "")):
                return match[1]
    return ""


__all__ = ["CheckState", "InstallationCheck", "run_installation_checks"]
