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
from argosy.kube.names import GroupKind
from argosy.kube.schema.bundled_crds import definitions
from argosy.sandbox.simulators import constants, kserve, nodes, openshift, openshift_ai, pvc_protection
from argosy.sandbox.simulators.container_logs import SimulatedLogs
from argosy.sandbox.simulators.cron_jobs import CronJobs
from argosy.sandbox.simulators.daemon_sets import DaemonSets
from argosy.sandbox.simulators.deployments import Deployments
from argosy.sandbox.simulators.heartbeats import Heartbeats
from argosy.sandbox.simulators.hpa_controller import Autoscalers
from argosy.sandbox.simulators.ingresses import Ingresses
from argosy.sandbox.simulators.jobs import Jobs
from argosy.sandbox.simulators.kserve import InferenceServices, Models, Probe
from argosy.sandbox.simulators.persistent_volume_claims import Claims
from argosy.sandbox.simulators.pod_disruption_budgets import Budgets
from argosy.sandbox.simulators.pod_processes import Processes
from argosy.sandbox.simulators.pods import Pods
from argosy.sandbox.simulators.replica_sets import ReplicaSets
from argosy.sandbox.simulators.resource_quotas import Quotas
from argosy.sandbox.simulators.services import Services
from argosy.sandbox.simulators.stateful_sets import StatefulSets

NAME: Final = "simulators"
KUBELET, PLAIN, AI = "kubelet", "plain", "ai"
PLAYED: Final[dict[GroupKind, Callable[[], Controller]]] = {
    constants.POD: Pods,
    constants.CLAIM: Claims,
    constants.REPLICA_SET: ReplicaSets,
    constants.DEPLOYMENT: Deployments,
    constants.STATEFUL_SET: StatefulSets,
    constants.DAEMON_SET: DaemonSets,
    constants.JOB: Jobs,
    constants.CRON_JOB: CronJobs,
    constants.SERVICE: Services,
    constants.INGRESS: Ingresses,
    constants.AUTOSCALER: Autoscalers,
    constants.BUDGET: Budgets,
    constants.QUOTA: Quotas,
    constants.NODE: Heartbeats,
    **openshift.PLAYED,
    **openshift_ai.PLAYED,
    kserve.INFERENCE_SERVICE: InferenceServices,
}
NEEDS: Final = {**openshift.NEEDS, **openshift_ai.NEEDS, kserve.INFERENCE_SERVICE: kserve.NEEDS}
# Without Nodes: no control plane in the sandbox reads their heartbeats.
WITH_AI: Final = tuple(kind for kind in PLAYED if kind != constants.NODE)
WHOLE: Final = tuple(kind for kind in WITH_AI if kind not in openshift_ai.PLAYED)
WITHOUT_OPENSHIFT: Final = tuple(kind for kind in WHOLE if kind not in openshift.PLAYED)
# The kinds that kube-controller-manager leaves to others.
WITHOUT_CONTROL_PLANE: Final = (constants.NODE, constants.POD, constants.CLAIM)


def make(variant: str) -> AddOn:
    chosen = {"": WHOLE, AI: WITH_AI, KUBELET: WITHOUT_CONTROL_PLANE, PLAIN: WITHOUT_OPENSHIFT}.get(variant)
    kinds = chosen if chosen is not None else _kinds(variant)
    models = Models() if kserve.INFERENCE_SERVICE in kinds else None
    processes = Processes()
    made = playing(kinds, name=f"{NAME}={variant}" if variant else NAME, probe=models, processes=processes)
    return replace(made, beside=partial(_beside, processes, models), pod_logs=SimulatedLogs(processes, models))


@asynccontextmanager
async def _beside(processes: Processes, models: Models | None, folder: Path) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for each in (processes, models):
            if each is not None:
                await stack.enter_async_context(each.beside(folder))
        yield


def playing(
    kinds: Iterable[GroupKind],
    *,
    name: str = NAME,
    probe: Probe | None = None,
    processes: Processes | None = None,
    domain: str = openshift.DOMAIN,
) -> AddOn:
    """Build an AddOn that simulates only the given kinds, for clusters where other components handle the rest.

    `probe` queries a model server, if one runs. `processes` runs the Pods that request it. `domain` is the suffix of
    generated hostnames.
    """
    chosen = [kind for kind in PLAYED if kind in set(kinds)]
    needed = dict.fromkeys(name for kind in chosen for name in NEEDS.get(kind, ()))
    made: dict[GroupKind, Callable[[], Controller]] = {
        **PLAYED,
        constants.POD: partial(Pods, processes),
        openshift.ROUTE: partial(openshift.Routes, domain),
        kserve.INFERENCE_SERVICE: partial(
            InferenceServices, probe, domain=domain, has_routes=openshift.ROUTE in chosen
        ),
    }
    asked = (pvc_protection.ADMITTER, *openshift.admitters(domain), *kserve.ADMITTERS)
    return AddOn(
        name,
        about=f"simulates {', '.join(kind.kind for kind in chosen)}; only Pods that request it run ({constants.BY})",
        controllers=[made[kind]() for kind in chosen],
        definitions=definitions(*needed) if needed else (),
        admitters=[each for each in asked if each.kind in chosen],
        performers=[each for each in openshift.PERFORMERS if each.kind in chosen],
        first=[
            *nodes.first_objects(),
            *(kserve.build_stock_runtimes() if kserve.INFERENCE_SERVICE in chosen else ()),
        ],
        pod_logs=SimulatedLogs(processes),
        embedded_only=True,
    )


def _kinds(variant: str) -> list[GroupKind]:
    known = {kind.kind: kind for kind in PLAYED}
    wanted = variant.split("+")
    if unknown := next((each for each in wanted if each not in known), None):
        where = f"--addons {NAME}={variant}"
        choice = f"{NAME}, {NAME}={AI}, {NAME}={PLAIN}, {NAME}={KUBELET}, or some of {'+'.join(known)}"
        raise UserError(f"no simulator for kind {unknown}; choose among: {choice}", where=where)
    return [known[each] for each in wanted]
