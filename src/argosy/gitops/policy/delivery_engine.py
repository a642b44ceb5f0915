"""Who delivers an Application where argosy and an Argo CD are in one cluster.

In: workloads and Pods, an Application's annotations and namespace. Out: who delivers it, in a word and in a sentence.
Never: raises; asks a cluster.
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
# argo: labels of the application controller: of its manifests and its chart, and of whatever an operator calls it. The
# Pods of an operator have its name alone.
NAMES: Final = ("argocd-application-controller", "openshift-gitops-application-controller")
SELECTORS: Final = (f"{NAME} in ({','.join(NAMES)})", f"{COMPONENT}=application-controller,{PART_OF}=argocd")
POD: Final = "Pod"
KINDS: Final = ("StatefulSet", "Deployment", POD)
OVER: Final = ("Succeeded", "Failed")  # k8s: phases in which nothing of a Pod runs, or ever will
# argo: which namespaces an application controller looks at beside its own: a flag, else a variable, which its manifests
# take from a ConfigMap.
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
    """By its labels, as SELECTORS have it."""
    labels = manifest["metadata"].get("labels") or {}
    if manifest.get("kind") not in KINDS:
        return False
    is_component = labels.get(COMPONENT) == "application-controller" and labels.get(PART_OF) == "argocd"
    return labels.get(NAME) in NAMES or is_component


def is_running(found: Manifest) -> bool:
    """Whether an Argo CD's controller runs behind it, is to run, or has not ended yet. In the sandbox it only plays."""
    spec, status = found.get("spec") or {}, found.get("status") or {}
    if is_simulated(found):
        return False
    if found.get("kind") == POD:
        return status.get("phase") not in OVER
    return _count(spec.get("replicas", 1)) > 0 or _count(status.get("replicas")) > 0


def is_simulated(found: Manifest) -> bool:
    """True for a workload of the sandbox's stand-in: it is always ready, and nothing runs in it."""
    return SIMULATED in (found["metadata"].get("annotations") or {})


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


# -- how far it looks --------------------------------------------------------------------------------------------------


def patterns(text: object) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip()) if isinstance(text, str) else ()


def claimed(found: Manifest) -> tuple[str, ...] | None:
    """The namespaces that a workload or a Pod says itself that it looks at; None: its namespace's ConfigMap says so."""
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
    """The ServiceAccount that it runs as."""
    return str(_pod(found).get("serviceAccountName") or "default")


def _pod(found: Manifest) -> Mapping[str, Any]:
    spec = found.get("spec") or {}
    return spec if found.get("kind") == POD else (spec.get("template") or {}).get("spec") or {}


def _containers(found: Manifest) -> list[Mapping[str, Any]]:
    return [each for each in _pod(found).get("containers") or () if isinstance(each, dict)]


def fits(pattern: str, namespace: str) -> bool:
    """argo: a glob, or an expression between slashes. One that cannot be read here, such as with a look ahead, fits."""
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
    """An Argo CD's: it looks at Applications of its own namespace, and of those that one of `reach` fits."""

    kind: str
    namespace: str
    name: str
    reach: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def looks_at(self, namespace: str) -> bool:
        return namespace == self.namespace or any(fits(each, namespace) for each in self.reach)


# -- who delivers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Engines:
    """What is known of other engines."""

    controllers: tuple[Controller, ...] = ()
    is_known: bool = True  # False: they may not be read, so that there may be one

    @property
    def argocd(self) -> tuple[str, ...]:
        """All of them, wherever they look: such as `StatefulSet argocd/name`."""
        return _names(self.controllers)

    def over(self, namespace: str) -> tuple[str, ...]:
        """Those that look at the Applications of a namespace."""
        return _names(each for each in self.controllers if each.looks_at(namespace))

    def deliverer(self, annotations: Mapping[str, str], namespace: str) -> Deliverer:
        word, is_paused = annotations.get(ENGINE), annotations.get(SKIP_RECONCILE) == "true"
        is_looked_at = bool(self.over(namespace))
        if word == ARGOSY:
            # What pauses it is addressed to Argo CD; without that, both deliver.
            return Deliverer.BOTH if is_looked_at and not is_paused else Deliverer.ARGOSY
        if is_paused:
            return Deliverer.NOBODY
        if is_looked_at:
            return Deliverer.ARGOCD
        if not self.is_known:
            return Deliverer.UNKNOWN
        return Deliverer.NOBODY if word else Deliverer.ARGOSY

    def told(self, annotations: Mapping[str, str], namespace: str) -> str:
        """Who delivers it, and why that is so."""
        who, word = self.deliverer(annotations, namespace), annotations.get(ENGINE)
        match who:
            case Deliverer.ARGOCD:
                return f"{who} ({', '.join(self.over(namespace))}); argosy observes"
            case Deliverer.BOTH:
                return f'{who}: set {SKIP_RECONCILE}: "true", so that only argosy does'
            case Deliverer.NOBODY if word and annotations.get(SKIP_RECONCILE) != "true":
                return f"{who}: {ENGINE} is {word}, and no Argo CD looks at namespace {namespace}"
            case Deliverer.NOBODY:
                return f'{who}: {SKIP_RECONCILE} is "true"'
            case Deliverer.UNKNOWN:
                return f"{who}: whether an Argo CD runs here may not be read; argosy delivers with {ENGINE}: argosy"
        return f"{who} ({ENGINE}: {word})" if word else str(who)

    def is_usual(self, annotations: Mapping[str, str], namespace: str) -> bool:
        """Whether there is nothing to say: argosy delivers, and nobody else could. What is not known is not said."""
        is_marked = ENGINE in annotations or annotations.get(SKIP_RECONCILE) == "true"
        return not self.over(namespace) and not is_marked

    @property
    def sentence(self) -> str:
        """For a log."""
        if self.controllers:
            places = sorted({place for each in self.controllers for place in (each.namespace, *each.reach)})
            return (
                f"an Argo CD delivers here ({', '.join(self.argocd)}): Applications in {', '.join(places)} are "
                f"observed, and of them only those with {ENGINE}: argosy are delivered; all others are"
            )
        if not self.is_known:
            return (
                "whether an Argo CD delivers here may not be read (StatefulSets, Deployments, Pods): only Applications "
                f"with {ENGINE}: argosy are delivered"
            )
        return "no Argo CD delivers here: all Applications are delivered, but for those that are paused"

    def beside(self, namespace: str) -> str:
        """What others mean for the Applications of a namespace; empty where there are none."""
        if near := self.over(namespace):
            told = f"an Argo CD ({', '.join(near)}) delivers the Applications in {namespace}: argosy only observes them"
            return f"{told}, until argosy app adopt"
        if self.controllers:
            told = f"an Argo CD ({', '.join(self.argocd)}) does not look at the Applications in {namespace}"
            return f"{told}: argosy delivers them"
        return ""


def _names(controllers: Iterable[Controller]) -> tuple[str, ...]:
    return tuple(sorted({str(each) for each in controllers}))


Reach = Callable[[Manifest], Iterable[str]]


def running(found: Iterable[Manifest]) -> list[Manifest]:
    """Of what is labelled as an application controller. Pods where nothing else in their namespace is.

    A real cluster makes Pods also for what only plays a controller: they play, too.
    """
    found = tuple(found)
    there = [each for each in found if is_running(each)]
    told = {each["metadata"].get("namespace") for each in there if each.get("kind") != POD}
    told |= {each["metadata"].get("namespace") for each in found if is_simulated(each)}
    return [each for each in there if each.get("kind") != POD or each["metadata"].get("namespace") not in told]


def engines_of(found: Iterable[Manifest], reach: Reach = lambda found: ()) -> Engines:
    """`reach`: which namespaces each looks at beside its own."""
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
