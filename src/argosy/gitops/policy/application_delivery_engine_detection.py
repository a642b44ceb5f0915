"""Decides which engine delivers an Application if argosy and Argo CD share a cluster.

In: workloads and Pods, an Application's annotations and namespace. Out: the engine, as a value and as a message. Never:
raises; asks a cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from argosy.annotations import ENGINE, SIMULATED, SKIP_RECONCILE
from argosy.kube.objects import Manifest
from argosy.languages.globs import matches_glob
from argosy.languages.go_regexp import InvalidGoRegexp, compile_go_regexp

ARGOSY: Final = "argosy"
NAME_LABEL, COMPONENT_LABEL, PART_OF_LABEL = (
    f"app.kubernetes.io/{label}" for label in ("name", "component", "part-of")
)
# argo: labels of the application controller in its manifests, its chart, and with an operator. The Pods of an operator
# have only the name label.
CONTROLLER_NAMES: Final = ("argocd-application-controller", "openshift-gitops-application-controller")
CONTROLLER_SELECTORS: Final = (
    f"{NAME_LABEL} in ({','.join(CONTROLLER_NAMES)})",
    f"{COMPONENT_LABEL}=application-controller,{PART_OF_LABEL}=argocd",
)
POD_KIND: Final = "Pod"
CONTROLLER_KINDS: Final = ("StatefulSet", "Deployment", POD_KIND)
ENDED_POD_PHASES: Final = ("Succeeded", "Failed")  # k8s: phases in which a Pod has ended
# argo: the namespaces that an application controller watches besides its own: a flag, else an environment variable,
# which its manifests take from a ConfigMap.
NAMESPACES_FLAG, NAMESPACES_VARIABLE = "--application-namespaces", "ARGOCD_APPLICATION_NAMESPACES"
PARAMETERS_CONFIG_MAP, NAMESPACES_PARAMETER = "argocd-cmd-params-cm", "application.namespaces"


class Deliverer(enum.StrEnum):
    ARGOSY = "argosy"
    ARGOCD = "Argo CD"
    BOTH = "argosy and Argo CD"
    NOBODY = "nobody"
    UNKNOWN = "unknown"

    @property
    def is_argosy(self) -> bool:
        return self in (Deliverer.ARGOSY, Deliverer.BOTH)


def is_application_controller(manifest: Manifest) -> bool:
    """True if the labels match CONTROLLER_SELECTORS."""
    labels = manifest["metadata"].get("labels") or {}
    if manifest.get("kind") not in CONTROLLER_KINDS:
        return False
    is_component = labels.get(COMPONENT_LABEL) == "application-controller" and labels.get(PART_OF_LABEL) == "argocd"
    return labels.get(NAME_LABEL) in CONTROLLER_NAMES or is_component


def is_running(workload: Manifest) -> bool:
    """True if an Argo CD controller runs, should run, or has not ended yet. Simulated ones do not count."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if is_simulated(workload):
        return False
    if workload.get("kind") == POD_KIND:
        return status.get("phase") not in ENDED_POD_PHASES
    return _int_or_zero(spec.get("replicas", 1)) > 0 or _int_or_zero(status.get("replicas")) > 0


def is_simulated(workload: Manifest) -> bool:
    """True for a simulated workload of the sandbox: it is always ready, but runs nothing."""
    return SIMULATED in (workload["metadata"].get("annotations") or {})


def _int_or_zero(value: Any) -> int:
    return value if isinstance(value, int) else 0


# -- namespaces in scope -----------------------------------------------------------------------------------------------


def split_patterns(text: object) -> tuple[str, ...]:
    return tuple(pattern.strip() for pattern in text.split(",") if pattern.strip()) if isinstance(text, str) else ()


def read_configured_namespaces(workload: Manifest) -> tuple[str, ...] | None:
    """Return the namespaces that a workload or Pod is configured to watch; None: see the ConfigMap of its namespace."""
    for container in _list_containers(workload):
        arguments = [str(argument) for part in ("command", "args") for argument in container.get(part) or ()]
        for index, argument in enumerate(arguments):
            if argument == NAMESPACES_FLAG:
                return split_patterns(next(iter(arguments[index + 1 :]), ""))
            if argument.startswith(f"{NAMESPACES_FLAG}="):
                return split_patterns(argument.partition("=")[2])
        for variable in container.get("env") or ():
            if isinstance(variable, dict) and variable.get("name") == NAMESPACES_VARIABLE and "value" in variable:
                return split_patterns(variable["value"])
    return None


def read_service_account(workload: Manifest) -> str:
    """Return the ServiceAccount of the workload."""
    return str(_find_pod_spec(workload).get("serviceAccountName") or "default")


def _find_pod_spec(workload: Manifest) -> Mapping[str, Any]:
    spec = workload.get("spec") or {}
    return spec if workload.get("kind") == POD_KIND else (spec.get("template") or {}).get("spec") or {}


def _list_containers(workload: Manifest) -> list[Mapping[str, Any]]:
    return [container for container in _find_pod_spec(workload).get("containers") or () if isinstance(container, dict)]


def matches_namespace(pattern: str, namespace: str) -> bool:
    """argo: a glob, or a regular expression between slashes.

    An unsupported expression, such as with lookahead, matches.
    """
    if (
        len(pattern) > 1
        and pattern.startswith("/")
        and pattern.endswith("/")
        and _matches_expression(pattern[1:-1], namespace)
    ):
        return True
    return matches_glob(pattern, namespace)


@lru_cache(maxsize=4096)
def _matches_expression(pattern: str, namespace: str) -> bool:
    if "[[:" in pattern:
        return True  # argo: a class such as [[:alpha:]] is another set in the engine of Argo CD
    try:
        return bool(compile_go_regexp(pattern)(namespace))
    except InvalidGoRegexp:
        return True


@dataclass(frozen=True, slots=True, order=True)
class ArgoCDController:
    """An application controller of Argo CD: it watches its own namespace and those that match `extra_namespaces`."""

    kind: str
    namespace: str
    name: str
    extra_namespaces: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def watches_namespace(self, namespace: str) -> bool:
        return namespace == self.namespace or any(
            matches_namespace(pattern, namespace) for pattern in self.extra_namespaces
        )


# -- deliverer ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeliveryEngines:
    """The known Argo CD controllers."""

    controllers: tuple[ArgoCDController, ...] = ()
    is_known: bool = True  # False: argosy may not list workloads, so there may be one

    @property
    def controller_names(self) -> tuple[str, ...]:
        """All controllers, such as `StatefulSet argocd/name`."""
        return _list_names(self.controllers)

    def list_watching_controllers(self, namespace: str) -> tuple[str, ...]:
        """Return the controllers that watch a namespace."""
        return _list_names(controller for controller in self.controllers if controller.watches_namespace(namespace))

    def find_deliverer(self, annotations: Mapping[str, str], namespace: str) -> Deliverer:
        engine, is_paused = annotations.get(ENGINE), annotations.get(SKIP_RECONCILE) == "true"
        is_watched = bool(self.list_watching_controllers(namespace))
        if engine == ARGOSY:
            # The pause annotation is for Argo CD; without it, both deliver.
            return Deliverer.BOTH if is_watched and not is_paused else Deliverer.ARGOSY
        if is_paused:
            return Deliverer.NOBODY
        if is_watched:
            return Deliverer.ARGOCD
        if not self.is_known:
            return Deliverer.UNKNOWN
        return Deliverer.NOBODY if engine else Deliverer.ARGOSY

    def describe_deliverer(self, annotations: Mapping[str, str], namespace: str) -> str:
        """Describe which engine delivers the Application, and why."""
        deliverer, engine = self.find_deliverer(annotations, namespace), annotations.get(ENGINE)
        match deliverer:
            case Deliverer.ARGOCD:
                return f"{deliverer} ({', '.join(self.list_watching_controllers(namespace))}); argosy observes"
            case Deliverer.BOTH:
                return f'{deliverer}: set {SKIP_RECONCILE}: "true", so that only argosy does'
            case Deliverer.NOBODY if engine and annotations.get(SKIP_RECONCILE) != "true":
                return f"{deliverer}: {ENGINE} is {engine}, and no Argo CD watches namespace {namespace}"
            case Deliverer.NOBODY:
                return f'{deliverer}: {SKIP_RECONCILE} is "true"'
            case Deliverer.UNKNOWN:
                return (
                    f"{deliverer}: cannot list workloads, so Argo CD may run here; argosy delivers with "
                    f"{ENGINE}: argosy"
                )
        return f"{deliverer} ({ENGINE}: {engine})" if engine else str(deliverer)

    def is_argosy_only(self, annotations: Mapping[str, str], namespace: str) -> bool:
        """True if argosy delivers and no other engine could, so that nothing needs to be shown."""
        has_annotation = ENGINE in annotations or annotations.get(SKIP_RECONCILE) == "true"
        return not self.list_watching_controllers(namespace) and not has_annotation

    @property
    def log_message(self) -> str:
        """A message for the log."""
        if self.controllers:
            namespaces = sorted(
                {
                    namespace
                    for controller in self.controllers
                    for namespace in (controller.namespace, *controller.extra_namespaces)
                }
            )
            return (
                f"Argo CD runs in this cluster ({', '.join(self.controller_names)}): Applications in "
                f"{', '.join(namespaces)} are "
                f"only observed, except those with {ENGINE}: argosy; all others are delivered"
            )
        if not self.is_known:
            return (
                "cannot list StatefulSets, Deployments and Pods, so Argo CD may run in this cluster: only Applications "
                f"with {ENGINE}: argosy are delivered"
            )
        return "no Argo CD runs in this cluster: all Applications are delivered, except paused ones"

    def describe_for_namespace(self, namespace: str) -> str:
        """Describe what other engines mean for a namespace; empty if there are none."""
        if watching := self.list_watching_controllers(namespace):
            message = (
                f"an Argo CD ({', '.join(watching)}) delivers the Applications in {namespace}: argosy only "
                "observes them"
            )
            return f"{message}, until argosy app adopt"
        if self.controllers:
            message = f"an Argo CD ({', '.join(self.controller_names)}) does not watch the Applications in {namespace}"
            return f"{message}: argosy delivers them"
        return ""


def _list_names(controllers: Iterable[ArgoCDController]) -> tuple[str, ...]:
    return tuple(sorted({str(controller) for controller in controllers}))


FindExtraNamespaces = Callable[[Manifest], Iterable[str]]


def list_running_controllers(workloads: Iterable[Manifest]) -> list[Manifest]:
    """Return the running application controllers; Pods only if their namespace has no workload of them.

    A real cluster creates Pods for simulated workloads, too: these do not count either.
    """
    workloads = tuple(workloads)
    running_workloads = [workload for workload in workloads if is_running(workload)]
    covered_namespaces = {
        workload["metadata"].get("namespace") for workload in running_workloads if workload.get("kind") != POD_KIND
    }
    covered_namespaces |= {workload["metadata"].get("namespace") for workload in workloads if is_simulated(workload)}
    return [
        workload
        for workload in running_workloads
        if workload.get("kind") != POD_KIND or workload["metadata"].get("namespace") not in covered_namespaces
    ]


def build_engines(
    workloads: Iterable[Manifest], find_extra_namespaces: FindExtraNamespaces = lambda workload: ()
) -> DeliveryEngines:
    """Build DeliveryEngines. `find_extra_namespaces` returns those that a controller watches besides its own."""
    return DeliveryEngines(
        tuple(
            sorted(
                {
                    ArgoCDController(
                        str(workload.get("kind")),
                        str(workload["metadata"].get("namespace") or ""),
                        workload["metadata"]["name"],
                        tuple(sorted(set(find_extra_namespaces(workload)))),
                    )
                    for workload in list_running_controllers(workloads)
                }
            )
        )
    )
