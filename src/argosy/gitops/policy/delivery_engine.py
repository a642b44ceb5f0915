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
from argosy.languages.globs import matches
from argosy.languages.go_regexp import Unreadable, expression

ARGOSY: Final = "argosy"
NAME, COMPONENT, PART_OF = (f"app.kubernetes.io/{each}" for each in ("name", "component", "part-of"))
# argo: labels of the application controller in its manifests, its chart, and with an operator. The Pods of an operator
# have only the name label.
NAMES: Final = ("argocd-application-controller", "openshift-gitops-application-controller")
SELECTORS: Final = (f"{NAME} in ({','.join(NAMES)})", f"{COMPONENT}=application-controller,{PART_OF}=argocd")
POD: Final = "Pod"
KINDS: Final = ("StatefulSet", "Deployment", POD)
OVER: Final = ("Succeeded", "Failed")  # k8s: phases in which a Pod has ended
# argo: the namespaces that an application controller watches besides its own: a flag, else an environment variable,
# which its manifests take from a ConfigMap.
FLAG, VARIABLE = "--application-namespaces", "ARGOCD_APPLICATION_NAMESPACES"
PARAMETERS, PARAMETER = "argocd-cmd-params-cm", "application.namespaces"


class Deliverer(enum.StrEnum):
    ARGOSY = "argosy"
    ARGOCD = "Argo CD"
    BOTH = "argosy and Argo CD"
    NOBODY = "nobody"
    UNKNOWN = "unknown"

    @property
    def is_argosy(self) -> bool:
        return self in (Deliverer.ARGOSY, Deliverer.BOTH)


def is_controller(manifest: Manifest) -> bool:
    """True if the labels match CONTROLLER_SELECTORS."""
    labels = manifest["metadata"].get("labels") or {}
    if manifest.get("kind") not in KINDS:
        return False
    is_component = labels.get(COMPONENT) == "application-controller" and labels.get(PART_OF) == "argocd"
    return labels.get(NAME) in NAMES or is_component


def is_running(found: Manifest) -> bool:
    """True if an Argo CD controller runs, should run, or has not ended yet. Simulated ones do not count."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if is_simulated(found):
        return False
    if found.get("kind") == POD:
        return status.get("phase") not in OVER
    return _count(spec.get("replicas", 1)) > 0 or _count(status.get("replicas")) > 0


def is_simulated(found: Manifest) -> bool:
    """True for a simulated workload of the sandbox: it is always ready, but runs nothing."""
    return SIMULATED in (found["metadata"].get("annotations") or {})


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


# -- namespaces in scope -----------------------------------------------------------------------------------------------


def patterns(text: object) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip()) if isinstance(text, str) else ()


def claimed(found: Manifest) -> tuple[str, ...] | None:
    """Return the namespaces that a workload or Pod is configured to watch; None: see the ConfigMap of its namespace."""
    for each in _containers(found):
        words = [str(word) for part in ("command", "args") for word in each.get(part) or ()]
        for place, word in enumerate(words):
            if word == FLAG:
                return patterns(next(iter(words[place + 1 :]), ""))
            if word.startswith(f"{FLAG}="):
                return patterns(word.partition("=")[2])
        for variable in each.get("env") or ():
            if isinstance(variable, dict) and variable.get("name") == VARIABLE and "value" in variable:
                return patterns(variable["value"])
    return None


def account(found: Manifest) -> str:
    """Return the ServiceAccount of the workload."""
    return str(_pod(found).get("serviceAccountName") or "default")


def _pod(found: Manifest) -> Mapping[str, Any]:
    spec = found.get("spec") or {}
    return spec if found.get("kind") == POD else (spec.get("template") or {}).get("spec") or {}


def _containers(found: Manifest) -> list[Mapping[str, Any]]:
    return [each for each in _pod(found).get("containers") or () if isinstance(each, dict)]


def fits(pattern: str, namespace: str) -> bool:
    """argo: a glob, or a regular expression between slashes.

    An unsupported expression, such as with lookahead, matches.
    """
    if len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/") and _expressed(pattern[1:-1], namespace):
        return True
    return matches(pattern, namespace)


@lru_cache(maxsize=4096)
def _expressed(pattern: str, namespace: str) -> bool:
    try:
        return bool(expression(pattern)(namespace))
    except Unreadable:
        return True


@dataclass(frozen=True, slots=True, order=True)
class Controller:
    """An application controller of Argo CD: it watches its own namespace and those that match `extra_namespaces`."""

    kind: str
    namespace: str
    name: str
    reach: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def looks_at(self, namespace: str) -> bool:
        return namespace == self.namespace or any(fits(each, namespace) for each in self.reach)


# -- deliverer ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Engines:
    """The known Argo CD controllers."""

    controllers: tuple[Controller, ...] = ()
    is_known: bool = True  # False: argosy may not list workloads, so there may be one

    @property
    def argocd(self) -> tuple[str, ...]:
        """All controllers, such as `StatefulSet argocd/name`."""
        return _names(self.controllers)

    def over(self, namespace: str) -> tuple[str, ...]:
        """Return the controllers that watch a namespace."""
        return _names(each for each in self.controllers if each.looks_at(namespace))

    def deliverer(self, annotations: Mapping[str, str], namespace: str) -> Deliverer:
        word, is_paused = annotations.get(ENGINE), annotations.get(SKIP_RECONCILE) == "true"
        is_looked_at = bool(self.over(namespace))
        if word == ARGOSY:
            # The pause annotation is for Argo CD; without it, both deliver.
            return Deliverer.BOTH if is_looked_at and not is_paused else Deliverer.ARGOSY
        if is_paused:
            return Deliverer.NOBODY
        if is_looked_at:
            return Deliverer.ARGOCD
        if not self.is_known:
            return Deliverer.UNKNOWN
        return Deliverer.NOBODY if word else Deliverer.ARGOSY

    def told(self, annotations: Mapping[str, str], namespace: str) -> str:
        """Describe which engine delivers the Application, and why."""
        who, word = self.deliverer(annotations, namespace), annotations.get(ENGINE)
        match who:
            case Deliverer.ARGOCD:
                return f"{who} ({', '.join(self.over(namespace))}); argosy observes"
            case Deliverer.BOTH:
                return f'{who}: set {SKIP_RECONCILE}: "true", so that only argosy does'
            case Deliverer.NOBODY if word and annotations.get(SKIP_RECONCILE) != "true":
                return f"{who}: {ENGINE} is {word}, and no Argo CD watches namespace {namespace}"
            case Deliverer.NOBODY:
                return f'{who}: {SKIP_RECONCILE} is "true"'
            case Deliverer.UNKNOWN:
                return f"{who}: cannot list workloads, so Argo CD may run here; argosy delivers with {ENGINE}: argosy"
        return f"{who} ({ENGINE}: {word})" if word else str(who)

    def is_usual(self, annotations: Mapping[str, str], namespace: str) -> bool:
        """True if argosy delivers and no other engine could, so that nothing needs to be shown."""
        is_marked = ENGINE in annotations or annotations.get(SKIP_RECONCILE) == "true"
        return not self.over(namespace) and not is_marked

    @property
    def sentence(self) -> str:
        """A message for the log."""
        if self.controllers:
            places = sorted({place for each in self.controllers for place in (each.namespace, *each.reach)})
            return (
                f"Argo CD runs in this cluster ({', '.join(self.argocd)}): Applications in {', '.join(places)} are "
                f"only observed, except those with {ENGINE}: argosy; all others are delivered"
            )
        if not self.is_known:
            return (
                "cannot list StatefulSets, Deployments and Pods, so Argo CD may run in this cluster: only Applications "
                f"with {ENGINE}: argosy are delivered"
            )
        return "no Argo CD runs in this cluster: all Applications are delivered, except paused ones"

    def beside(self, namespace: str) -> str:
        """Describe what other engines mean for a namespace; empty if there are none."""
        if near := self.over(namespace):
            told = f"an Argo CD ({', '.join(near)}) delivers the Applications in {namespace}: argosy only observes them"
            return f"{told}, until argosy app adopt"
        if self.controllers:
            told = f"an Argo CD ({', '.join(self.argocd)}) does not watch the Applications in {namespace}"
            return f"{told}: argosy delivers them"
        return ""


def _names(controllers: Iterable[Controller]) -> tuple[str, ...]:
    return tuple(sorted({str(each) for each in controllers}))


Reach = Callable[[Manifest], Iterable[str]]


def running(found: Iterable[Manifest]) -> list[Manifest]:
    """Return the running application controllers; Pods only if their namespace has no workload of them.

    A real cluster creates Pods for simulated workloads, too: these do not count either.
    """
    found = tuple(found)
    there = [each for each in found if is_running(each)]
    told = {each["metadata"].get("namespace") for each in there if each.get("kind") != POD}
    told |= {each["metadata"].get("namespace") for each in found if is_simulated(each)}
    return [each for each in there if each.get("kind") != POD or each["metadata"].get("namespace") not in told]


def engines_of(found: Iterable[Manifest], reach: Reach = lambda found: ()) -> Engines:
    """Build DeliveryEngines. `find_extra_namespaces` returns those that a controller watches besides its own."""
    return Engines(
        tuple(
            sorted(
                {
                    Controller(
                        str(each.get("kind")),
                        str(each["metadata"].get("namespace") or ""),
                        each["metadata"]["name"],
                        tuple(sorted(set(reach(each)))),
                    )
                    for each in running(found)
                }
            )
        )
    )
