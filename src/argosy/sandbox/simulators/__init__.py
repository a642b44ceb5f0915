"""Builds the `simulators` add-on: controllers that simulate the kubelet, the scheduler and the usual cluster
controllers.

In: a variant: "" for the default kinds, `ai` to add OpenShift AI, `plain` without OpenShift, `kubelet` for the kinds
that no control plane handles, or a list of kinds such as `Pod+Job`. Out: an AddOn.
Never: runs a program, except Pods that request it and the model server, both confined; hides that a status is
simulated; touches objects that another add-on has marked as its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from argosy.errors import UserError
from argosy.kube.controller import AddOn, Controller
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.kube.well_known_kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    INGRESS,
    JOB,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    REPLICA_SET,
    RESOURCE_QUOTA,
    SERVICE,
    STATEFUL_SET,
)
from argosy.sandbox.simulators import (
    kserve,
    node_and_storage_class_manifests,
    openshift,
    openshift_ai,
    owner_references_and_marks,
    pvc_protection,
)
from argosy.sandbox.simulators.container_logs import SimulatedLogs
from argosy.sandbox.simulators.cron_jobs import CronJobController
from argosy.sandbox.simulators.daemon_sets import DaemonSetController
from argosy.sandbox.simulators.deployments import DeploymentController
from argosy.sandbox.simulators.hpa_controller import HorizontalPodAutoscalerController
from argosy.sandbox.simulators.ingresses import IngressController
from argosy.sandbox.simulators.jobs import JobController
from argosy.sandbox.simulators.kserve import InferenceServiceController, ModelProbe, ModelServers
from argosy.sandbox.simulators.node_heartbeats import NodeHeartbeatController
from argosy.sandbox.simulators.persistent_volume_claims import PersistentVolumeClaimController
from argosy.sandbox.simulators.pod_disruption_budgets import PodDisruptionBudgetController
from argosy.sandbox.simulators.pod_processes import PodProcesses
from argosy.sandbox.simulators.pods import PodController
from argosy.sandbox.simulators.replica_sets import ReplicaSetController
from argosy.sandbox.simulators.resource_quotas import ResourceQuotaController
from argosy.sandbox.simulators.services import ServiceController
from argosy.sandbox.simulators.stateful_sets import StatefulSetController

ADDON_NAME: Final = "simulators"
KUBELET_VARIANT, PLAIN_VARIANT, AI_VARIANT = "kubelet", "plain", "ai"
CONTROLLERS_BY_KIND: Final[dict[GroupKind, Callable[[], Controller]]] = {
    POD: PodController,
    PERSISTENT_VOLUME_CLAIM: PersistentVolumeClaimController,
    REPLICA_SET: ReplicaSetController,
    DEPLOYMENT: DeploymentController,
    STATEFUL_SET: StatefulSetController,
    DAEMON_SET: DaemonSetController,
    JOB: JobController,
    CRON_JOB: CronJobController,
    SERVICE: ServiceController,
    INGRESS: IngressController,
    owner_references_and_marks.HORIZONTAL_POD_AUTOSCALER: HorizontalPodAutoscalerController,
    owner_references_and_marks.POD_DISRUPTION_BUDGET: PodDisruptionBudgetController,
    RESOURCE_QUOTA: ResourceQuotaController,
    NODE: NodeHeartbeatController,
    **openshift.CONTROLLERS_BY_KIND,
    **openshift_ai.CONTROLLERS_BY_KIND,
    kserve.INFERENCE_SERVICE: InferenceServiceController,
}
REQUIRED_CRDS: Final = {
    **openshift.REQUIRED_CRDS,
    **openshift_ai.REQUIRED_CRDS,
    kserve.INFERENCE_SERVICE: kserve.REQUIRED_CRDS,
}
# Without Nodes: no control plane in the sandbox reads their heartbeats.
OPENSHIFT_AI_KINDS: Final = tuple(kind for kind in CONTROLLERS_BY_KIND if kind != NODE)
DEFAULT_KINDS: Final = tuple(kind for kind in OPENSHIFT_AI_KINDS if kind not in openshift_ai.CONTROLLERS_BY_KIND)
PLAIN_KINDS: Final = tuple(kind for kind in DEFAULT_KINDS if kind not in openshift.CONTROLLERS_BY_KIND)
# The kinds that kube-controller-manager leaves to others.
KUBELET_KINDS: Final = (NODE, POD, PERSISTENT_VOLUME_CLAIM)


def make(variant: str) -> AddOn:
    variant_kinds = {
        "": DEFAULT_KINDS,
        AI_VARIANT: OPENSHIFT_AI_KINDS,
        KUBELET_VARIANT: KUBELET_KINDS,
        PLAIN_VARIANT: PLAIN_KINDS,
    }.get(variant)
    kinds = variant_kinds if variant_kinds is not None else _parse_kinds(variant)
    models = ModelServers() if kserve.INFERENCE_SERVICE in kinds else None
    processes = PodProcesses()
    addon = build_addon(
        kinds, name=f"{ADDON_NAME}={variant}" if variant else ADDON_NAME, probe=models, processes=processes
    )
    return replace(
        addon,
        background=partial(_run_background_services, processes, models),
        pod_log_reader=SimulatedLogs(processes, models),
    )


@asynccontextmanager
async def _run_background_services(
    pod_processes: PodProcesses, model_servers: ModelServers | None, folder: Path
) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for service in (pod_processes, model_servers):
            if service is not None:
                await stack.enter_async_context(service.run_in(folder))
        yield


def build_addon(
    kinds: Iterable[GroupKind],
    *,
    name: str = ADDON_NAME,
    probe: ModelProbe | None = None,
    processes: PodProcesses | None = None,
    domain: str = openshift.DEFAULT_DOMAIN,
) -> AddOn:
    """Build an AddOn that simulates only the given kinds, for clusters where other components handle the rest.

    `probe` queries a model server, if one runs. `processes` runs the Pods that request it. `domain` is the suffix of
    generated hostnames.
    """
    simulated_kinds = [kind for kind in CONTROLLERS_BY_KIND if kind in set(kinds)]
    crd_names = dict.fromkeys(name for kind in simulated_kinds for name in REQUIRED_CRDS.get(kind, ()))
    factories: dict[GroupKind, Callable[[], Controller]] = {
        **CONTROLLERS_BY_KIND,
        POD: partial(PodController, processes),
        openshift.ROUTE: partial(openshift.RouteController, domain),
        kserve.INFERENCE_SERVICE: partial(
            InferenceServiceController, probe, domain=domain, has_routes=openshift.ROUTE in simulated_kinds
        ),
    }
    admission_handlers = (
        pvc_protection.ADMISSION_HANDLER,
        *openshift.build_admission_handlers(domain),
        *kserve.ADMISSION_HANDLERS,
    )
    return AddOn(
        name,
        description=f"simulates {', '.join(kind.kind for kind in simulated_kinds)}; only Pods that request it "
        f"run ({owner_references_and_marks.SIMULATED_NOTE})",
        controllers=[factories[kind]() for kind in simulated_kinds],
        definitions=load_definitions(*crd_names) if crd_names else (),
        admission_handlers=[handler for handler in admission_handlers if handler.kind in simulated_kinds],
        subresource_extensions=[
            handler for handler in openshift.SUBRESOURCE_EXTENSIONS if handler.kind in simulated_kinds
        ],
        initial_manifests=[
            *node_and_storage_class_manifests.build_initial_objects(),
            *(kserve.build_stock_runtimes() if kserve.INFERENCE_SERVICE in simulated_kinds else ()),
        ],
        pod_log_reader=SimulatedLogs(processes),
        embedded_only=True,
    )


def _parse_kinds(variant: str) -> list[GroupKind]:
    kinds_by_name = {kind.kind: kind for kind in CONTROLLERS_BY_KIND}
    requested_names = variant.split("+")
    if unknown_name := next((kind_name for kind_name in requested_names if kind_name not in kinds_by_name), None):
        flag = f"--addons {ADDON_NAME}={variant}"
        choice = (
            f"{ADDON_NAME}, {ADDON_NAME}={AI_VARIANT}, {ADDON_NAME}={PLAIN_VARIANT}, "
            f"{ADDON_NAME}={KUBELET_VARIANT}, or some of {'+'.join(kinds_by_name)}"
        )
        raise UserError(f"no simulator for kind {unknown_name}; choose among: {choice}", where=flag)
    return [kinds_by_name[kind_name] for kind_name in requested_names]
