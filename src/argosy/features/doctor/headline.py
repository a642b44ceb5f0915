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
from argosy.features.doctor.installation_check import CONTROLLER, STATEFUL_SET
from argosy.features.doctor.optional_reads import Asking
from argosy.features.setup.openshift import DEPLOYMENT, OPERATOR, PLACES
from argosy.gitops.analysis.live_view import SettingsView, moment, span
from argosy.gitops.application import Application
from argosy.gitops.coexistence.argocd_settings import SETTINGS
from argosy.gitops.policy.delivery_engine import POD, Deliverer, is_simulated
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.isolation.requirement import REFUSAL
from argosy.kube.client import Versioned
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

PARTS: Final = (CONTROLLER, "repo-server", "server")
PLAIN: Final = "argocd"
INSTALLED: Final = GroupKind("operators.coreos.com", "ClusterServiceVersion")
STALE: Final = 900.0
SILENT: Final = 120.0  # allows for clock skew
START: Final = "start argosy controller"
_TAG: Final = re.compile(r":v?(\d[\w.+-]*)$")


class Mark(enum.StrEnum):
    OK = "ok"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class HeadCheck:
    name: str
    mark: Mark
    text: str

    def document(self) -> dict[str, str]:
        return {"name": self.name, "state": self.mark.value, "text": self.text}


async def head_checks(
    asking: Asking, view: SettingsView, now: datetime, apps: Sequence[Application]
) -> list[HeadCheck]:
    workloads, version, product = await asyncio.gather(
        _workloads(asking, view), _version(asking), _product(asking, view)
    )
    return [
        HeadCheck("cluster", Mark.OK, f"cluster reachable{f' ({version})' if version else ''}"),
        _owner(view, workloads),
        _alive(view, workloads, product, now, apps),
        *_beside(view, apps),
        *_find_unconfined(apps),
    ]


async def _version(asking: Asking) -> str:
    try:
        found = await asking.cluster.version() if isinstance(asking.cluster, Versioned) else ""
    except ArgosyError:
        return ""
    return found.removeprefix("v").partition("+")[0]


async def _product(asking: Asking, view: SettingsView) -> str:
    """Find the product version of an operator installation, whose images may have no version tag."""
    if not view.owner:
        return ""
    for place in (view.namespace, *PLACES):
        for each in await asking.all_of(INSTALLED, place):
            if str(each["metadata"]["name"]).startswith(OPERATOR):
                return f"OpenShift GitOps {mapping(each.get('spec')).get('version') or ''}".strip()
    return ""


async def _workloads(asking: Asking, view: SettingsView) -> list[Manifest]:
    """argo: components are named after the ArgoCD resource, or `argocd-` without one."""
    found = await asyncio.gather(*(asking.all_of(kind, view.namespace) for kind in (STATEFUL_SET, DEPLOYMENT)))
    names = {f"{view.owner or PLAIN}-{part}" for part in PARTS}
    return [each for some in found for each in some if each["metadata"]["name"] in names]


def _owner(view: SettingsView, workloads: Sequence[Manifest]) -> HeadCheck:
    if view.owner:
        text = f"ArgoCD CR {view.namespace}/{view.owner} is the owner of {SETTINGS}"
        return HeadCheck("owner", Mark.OK, text)
    if view.data is not None:
        who = "argosy's own" if view.is_engine else "no operator's"
        return HeadCheck("owner", Mark.OK, f"{SETTINGS} in {view.namespace} is {who}: settings go right into it")
    if view.is_there:
        return HeadCheck("owner", Mark.UNKNOWN, f"{SETTINGS} in {view.namespace} cannot be read: who owns it?")
    if workloads or view.has_argocd:  # argo: none of its parts starts without
        text = f"there is no {SETTINGS} in {view.namespace}, and Argo CD needs one: apply its manifests again"
        return HeadCheck("owner", Mark.BAD, text)
    if view.has_argocd is None:
        return HeadCheck("owner", Mark.UNKNOWN, f"there is no {SETTINGS} in {view.namespace}: is there an Argo CD?")
    return HeadCheck("owner", Mark.OK, f"no {SETTINGS} in {view.namespace}, and no Argo CD: defaults hold")


def _alive(
    view: SettingsView, workloads: Sequence[Manifest], product: str, now: datetime, apps: Sequence[Application]
) -> HeadCheck:
    """Check the readiness of the components, else the time of the last status update."""
    ill = [each for each in workloads if not _has_replicas(each)]
    if ill:
        names = ", ".join(f"{each['kind']}/{each['metadata']['name']}" for each in ill)
        return HeadCheck("controllers", Mark.BAD, f"Argo CD is not running whole: {names} is not ready")
    if view.is_engine:
        renewed = moment(view.renewed)
        quiet = (now - renewed).total_seconds() if renewed else 0.0
        if quiet > SILENT:
            text = f"argosy's controller gave its last sign {span(quiet)} ago: {START}"
            return HeadCheck("controllers", Mark.BAD, text)
        if quiet > (view.lease_seconds or SILENT):  # it renews its Lease several times in that time
            text = f"no sign of life from argosy's controller for {span(quiet)}: does it run? Else {START}"
            return HeadCheck("controllers", Mark.UNKNOWN, text)
        return HeadCheck("controllers", Mark.OK, "argosy delivers")
    if any(CONTROLLER in each["metadata"]["name"] and not is_simulated(each) for each in workloads):
        version = _argo_version(workloads)
        told = " of ".join(filter(None, (f"Argo CD {version}".strip(), product)))
        return HeadCheck("controllers", Mark.OK, f"{told} runs")
    return _find_no_controller(view, workloads, apps) or _signs(view, now, apps)


def _find_no_controller(
    view: SettingsView, workloads: Sequence[Manifest], apps: Sequence[Application]
) -> HeadCheck | None:
    """Return a failed check if no controller delivers for certain; None if one runs or may be invisible."""
    if view.has_argosy or not view.sees_leases or not view.engines.is_known or view.engines.over(view.namespace):
        return None
    has_stand_in = any(is_simulated(each) for each in workloads)
    is_reconciled = any(each.status.get("reconciledAt") for each in apps)
    if is_reconciled and not view.has_stopped and not has_stand_in:
        return None  # a controller without a Lease in this namespace may have written the status
    reason = (
        "the Argo CD here is simulated, and no argosy controller runs"
        if has_stand_in
        else "no argosy controller and no Argo CD runs"
    )
    return HeadCheck("controllers", Mark.BAD, f"nobody delivers: {reason}; {START}")


def _signs(view: SettingsView, now: datetime, apps: Sequence[Application]) -> HeadCheck:
    """Check the last status update, also if only labels indicate an Argo CD controller."""
    near = view.engines.over(view.namespace)
    labelled = f"{', '.join(near)} has the labels of an Argo CD's controller" if near else ""
    observes = f"{labelled}, so that argosy only observes" if near and view.has_argosy else labelled
    times = [found for each in apps if (found := moment(str(each.status.get("reconciledAt") or "")))]
    if not times:
        text = f"{observes}; whether it works" if near else "whether a controller runs"
        return HeadCheck("controllers", Mark.UNKNOWN, f"{text} cannot be seen")
    quiet = (now - max(times)).total_seconds()
    if quiet > STALE:
        text = f"no Application was looked at for {span(quiet)}"
        told = f"{observes}, but {text}" if near else f"{text}: does a controller run?"
        return HeadCheck("controllers", Mark.BAD, told)
    if all(each.startswith(f"{POD} ") for each in near) and near:
        return HeadCheck("controllers", Mark.UNKNOWN, f"{observes}, but there is no Argo CD around it: whose is it?")
    text = f"{observes} " if near else "a controller runs "
    return HeadCheck("controllers", Mark.OK, f"{text}(last sign {span(quiet)} ago)")


def _beside(view: SettingsView, apps: Sequence[Application]) -> list[HeadCheck]:
    """If argosy and Argo CD both run: count what argosy delivers, and report what both deliver."""
    if not view.has_argosy or not view.engines.controllers:
        return []
    found = [view.engines.deliverer(app.annotations, app.namespace) for app in apps]
    ours, both = sum(each.is_argosy for each in found), found.count(Deliverer.BOTH)
    is_near = bool(view.engines.over(view.namespace))
    told = "argosy runs beside it, and delivers" if is_near else f"{view.engines.beside(view.namespace)},"
    told = f"{told} {ours} of {len(apps)} Applications"
    if both:
        names = ", ".join(app.name for app, each in zip(apps, found) if each is Deliverer.BOTH)
        return [HeadCheck("beside", Mark.BAD, f"{told}; both deliver {names}: argosy app adopt, or hand-back")]
    return [HeadCheck("beside", Mark.OK, told)]


def _find_unconfined(apps: Sequence[Application]) -> list[HeadCheck]:
    """Return a failed check if the controller refuses untrusted code because its node cannot confine it."""
    refused = {app.name: message for app in apps for message in _messages(app) if REFUSAL in message}
    if not refused:
        return []
    names, (sentence, *_) = ", ".join(sorted(refused)), refused.values()
    text = f"argosy's controller refuses untrusted code of {names}: {sentence[sentence.index(REFUSAL) :]}"
    return [HeadCheck("confinement", Mark.BAD, text)]


def _messages(app: Application) -> list[str]:
    health = (mapping(resource.get("health")) for resource in mappings(app.status.get("resources")))
    found = (*mappings(app.status.get("conditions")), *health)
    return [str(each.get("message") or "") for each in found]


def _has_replicas(workload: Manifest) -> bool:
    wanted = mapping(workload.get("spec")).get("replicas", 1)
    return int(mapping(workload.get("status")).get("readyReplicas") or 0) >= int(wanted or 0)


def _argo_version(workloads: Sequence[Manifest]) -> str:
    for each in workloads:
        template = mapping(mapping(mapping(each.get("spec")).get("template")).get("spec"))
        for container in mappings(template.get("containers")):
            if match := _TAG.search(str(container.get("image") or "")):
                return match[1]
    return ""


__all__ = ["HeadCheck", "Mark", "head_checks"]
