"""Controllers that make the embedded cluster behave like one: Pods become ready, workloads roll out, claims are bound.

In: a variant: none for the usual, `ai` for OpenShift AI as well, `plain` for what is no OpenShift, `kubelet` for what
no control plane does, or kinds such as `Pod+Job`. Out: an AddOn.
Never: runs a program, but for one that answers for models, confined; every status says that it is simulated. What
another add-on has marked as its own is left alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from argosy.addons.simulators import names, nodes, openshift, openshift_ai, protection, serving
from argosy.addons.simulators.autoscalers import Autoscalers
from argosy.addons.simulators.budgets import Budgets
from argosy.addons.simulators.claims import Claims
from argosy.addons.simulators.cron_jobs import CronJobs
from argosy.addons.simulators.daemon_sets import DaemonSets
from argosy.addons.simulators.deployments import Deployments
from argosy.addons.simulators.heartbeats import Heartbeats
from argosy.addons.simulators.ingresses import Ingresses
from argosy.addons.simulators.jobs import Jobs
from argosy.addons.simulators.logs import SimulatedLogs
from argosy.addons.simulators.pods import Pods
from argosy.addons.simulators.processes import Processes
from argosy.addons.simulators.quotas import Quotas
from argosy.addons.simulators.replica_sets import ReplicaSets
from argosy.addons.simulators.services import Services
from argosy.addons.simulators.serving import InferenceServices, Models, Probe
from argosy.addons.simulators.stateful_sets import StatefulSets
from argosy.errors import UserError
from argosy.kube.controller import AddOn, Controller
from argosy.kube.objects.names import GroupKind
from argosy.kube.schema.bundled_crds import definitions

NAME: Final = "simulators"
KUBELET, PLAIN, AI = "kubelet", "plain", "ai"
PLAYED: Final[dict[GroupKind, Callable[[], Controller]]] = {
    names.POD: Pods,
    names.CLAIM: Claims,
    names.REPLICA_SET: ReplicaSets,
    names.DEPLOYMENT: Deployments,
    names.STATEFUL_SET: StatefulSets,
    names.DAEMON_SET: DaemonSets,
    names.JOB: Jobs,
    names.CRON_JOB: CronJobs,
    names.SERVICE: Services,
    names.INGRESS: Ingresses,
    names.AUTOSCALER: Autoscalers,
    names.BUDGET: Budgets,
    names.QUOTA: Quotas,
    names.NODE: Heartbeats,
    **openshift.PLAYED,
    **openshift_ai.PLAYED,
    serving.INFERENCE_SERVICE: InferenceServices,
}
NEEDS: Final = {**openshift.NEEDS, **openshift_ai.NEEDS, serving.INFERENCE_SERVICE: serving.NEEDS}
WITH_AI: Final = tuple(kind for kind in PLAYED if kind != names.NODE)  # nobody listens to heartbeats in the sandbox
WHOLE: Final = tuple(kind for kind in WITH_AI if kind not in openshift_ai.PLAYED)
WITHOUT_OPENSHIFT: Final = tuple(kind for kind in WHOLE if kind not in openshift.PLAYED)
WITHOUT_CONTROL_PLANE: Final = (names.NODE, names.POD, names.CLAIM)  # what a controller-manager leaves to others


def make(variant: str) -> AddOn:
    chosen = {"": WHOLE, AI: WITH_AI, KUBELET: WITHOUT_CONTROL_PLANE, PLAIN: WITHOUT_OPENSHIFT}.get(variant)
    kinds = chosen if chosen is not None else _kinds(variant)
    models = Models() if serving.INFERENCE_SERVICE in kinds else None
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
    """An AddOn for these kinds only, for clusters where others play the rest.

    `probe` asks a model, where one runs; `processes` runs Pods that ask for it; `domain` is what hosts end in.
    """
    chosen = [kind for kind in PLAYED if kind in set(kinds)]
    needed = dict.fromkeys(name for kind in chosen for name in NEEDS.get(kind, ()))
    made: dict[GroupKind, Callable[[], Controller]] = {
        **PLAYED,
        names.POD: partial(Pods, processes),
        openshift.ROUTE: partial(openshift.Routes, domain),
        serving.INFERENCE_SERVICE: partial(
            InferenceServices, probe, domain=domain, has_routes=openshift.ROUTE in chosen
        ),
    }
    asked = (protection.ADMITTER, *openshift.admitters(domain), *serving.ADMITTERS)
    return AddOn(
        name,
        about=f"plays {', '.join(kind.kind for kind in chosen)}; nothing runs but what asks for it ({names.BY})",
        controllers=[made[kind]() for kind in chosen],
        definitions=definitions(*needed) if needed else (),
        admitters=[each for each in asked if each.kind in chosen],
        performers=[each for each in openshift.PERFORMERS if each.kind in chosen],
        first=[
            *nodes.first_objects(),
            *(serving.build_stock_runtimes() if serving.INFERENCE_SERVICE in chosen else ()),
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
        raise UserError(f"there is nothing that plays {unknown}; choose among: {choice}", where=where)
    return [known[each] for each in wanted]
