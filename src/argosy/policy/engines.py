"""Who delivers an Application where argosy and an Argo CD are in one cluster.

In: workloads and Pods, an Application's annotations. Out: who delivers it, in a word and in a sentence. Never: raises;
asks a cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.model.annotations import ENGINE, SIMULATED, SKIP_RECONCILE
from argosy.model.manifest import Manifest

ARGOSY: Final = "argosy"
NAME, COMPONENT, PART_OF = (f"app.kubernetes.io/{each}" for each in ("name", "component", "part-of"))
# argo: labels of the application controller: of its manifests and its chart, and of whatever an operator calls it. The
# Pods of an operator have its name alone.
NAMES: Final = ("argocd-application-controller", "openshift-gitops-application-controller")
SELECTORS: Final = (f"{NAME} in ({','.join(NAMES)})", f"{COMPONENT}=application-controller,{PART_OF}=argocd")
POD: Final = "Pod"
KINDS: Final = ("StatefulSet", "Deployment", POD)
OVER: Final = ("Succeeded", "Failed")  # k8s: phases in which nothing of a Pod runs, or ever will


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
    if _plays(found):
        return False
    if found.get("kind") == POD:
        return status.get("phase") not in OVER
    return _count(spec.get("replicas", 1)) > 0 or _count(status.get("replicas")) > 0


def _plays(found: Manifest) -> bool:
    return SIMULATED in (found["metadata"].get("annotations") or {})


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Engines:
    """What is known of other engines: Argo CD's controllers, such as `StatefulSet argocd/name`."""

    argocd: tuple[str, ...] = ()
    is_known: bool = True  # False: they may not be read, so that there may be one

    def deliverer(self, annotations: Mapping[str, str]) -> Deliverer:
        word, is_paused = annotations.get(ENGINE), annotations.get(SKIP_RECONCILE) == "true"
        if word == ARGOSY:
            # What pauses it is addressed to Argo CD; without that, both deliver.
            return Deliverer.BOTH if self.argocd and not is_paused else Deliverer.ARGOSY
        if is_paused:
            return Deliverer.NOBODY
        if self.argocd:
            return Deliverer.ARGOCD
        if not self.is_known:
            return Deliverer.UNKNOWN
        return Deliverer.NOBODY if word else Deliverer.ARGOSY

    def told(self, annotations: Mapping[str, str]) -> str:
        """Who delivers it, and why that is so."""
        who, word = self.deliverer(annotations), annotations.get(ENGINE)
        match who:
            case Deliverer.ARGOCD:
                return f"{who} ({', '.join(self.argocd)}); argosy observes"
            case Deliverer.BOTH:
                return f'{who}: set {SKIP_RECONCILE}: "true", so that only argosy does'
            case Deliverer.NOBODY if word and annotations.get(SKIP_RECONCILE) != "true":
                return f"{who}: {ENGINE} is {word}, and no Argo CD runs here"
            case Deliverer.NOBODY:
                return f'{who}: {SKIP_RECONCILE} is "true"'
            case Deliverer.UNKNOWN:
                return f"{who}: whether an Argo CD runs here may not be read; argosy delivers with {ENGINE}: argosy"
        return f"{who} ({ENGINE}: {word})" if word else str(who)

    def is_usual(self, annotations: Mapping[str, str]) -> bool:
        """Whether there is nothing to say: argosy delivers, and nobody else could. What is not known is not said."""
        return not self.argocd and ENGINE not in annotations and annotations.get(SKIP_RECONCILE) != "true"

    @property
    def sentence(self) -> str:
        """For a log."""
        if self.argocd:
            return (
                f"an Argo CD delivers here ({', '.join(self.argocd)}): Applications are observed, and only those with "
                f"{ENGINE}: argosy are delivered"
            )
        if not self.is_known:
            return (
                "whether an Argo CD delivers here may not be read (StatefulSets, Deployments, Pods): only Applications "
                f"with {ENGINE}: argosy are delivered"
            )
        return "no Argo CD delivers here: all Applications are delivered, but for those that are paused"


def engines_of(found: Iterable[Manifest]) -> Engines:
    """From what is labelled as an application controller. Pods are told where nothing else in their namespace is.

    A real cluster makes Pods also for what only plays a controller: they play, too.
    """
    found = tuple(found)
    running = [each for each in found if is_running(each)]
    told = {each["metadata"].get("namespace") for each in running if each.get("kind") != POD}
    told |= {each["metadata"].get("namespace") for each in found if _plays(each)}
    names = {
        f"{each.get('kind')} {each['metadata'].get('namespace')}/{each['metadata']['name']}"
        for each in running
        if each.get("kind") != POD or each["metadata"].get("namespace") not in told
    }
    return Engines(tuple(sorted(names)))
