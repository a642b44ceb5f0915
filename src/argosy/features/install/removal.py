"""Plan of an uninstall: the objects to delete.

In: live objects. Out: a plan of deletions. Never: does I/O; deletes delivered resources unless requested; deletes a CRD
that an Argo CD or a remaining object needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from argosy.annotations import ENGINE, SKIP_RECONCILE
from argosy.features.install.live_state import Remains
from argosy.features.install.manifests import DEFINITION, NAMESPACE
from argosy.features.install.options import InstallOptions
from argosy.features.install.plan import CONFIG_MAP, SECRET, Plan, Step, elsewhere, marking
from argosy.features.setup.delivery.plan import Verb
from argosy.gitops.application.finalizers import OF_RESOURCES, is_served
from argosy.gitops.application.install_labels import has_marked, is_ours
from argosy.gitops.policy.delivery_engine import ARGOSY
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

MOST_NAMED: Final = 5
EMPTIED: Final = (
    "namespace {place} is deleted with everything in it: projects, settings, accounts, repository and cluster Secrets;"
    " argosy admin export --secrets --all-settings -n {place} saves them"
)


def make_removal(options: InstallOptions, remains: Remains, *, with_applications: bool, is_forced: bool) -> Plan:
    gone = [each for each in remains.applications if remains.is_delivered(each)] if with_applications else []
    kept = [each for each in remains.applications if each not in gone]
    steps = [_deletion(each) for each in gone]
    place = _doomed(options, remains, kept, with_applications=with_applications)
    notes = [EMPTIED.format(place=place)] if place else []
    # Reverse of the install order: workloads are deleted before their permissions.
    for key, live in reversed(list(remains.live.live.items())):
        if not is_ours(live):
            notes.append(_not_ours(key, place))
            if with_applications and key.group_kind == NAMESPACE and has_marked(live):
                steps.append(marking(live, is_control=False))
        elif why := _stays(key, options, remains, kept, with_applications=with_applications):
            notes.append(f"{key.kind} {key.name} stays: {why}")
        else:
            steps.append(_deletion(live))
    steps += [_deletion(each) for each in remains.leases]
    if remains.budgets is not None and is_ours(remains.budgets):
        steps.append(_deletion(remains.budgets))
    steps.sort(key=lambda step: step.key.group_kind in (DEFINITION, NAMESPACE))
    if kept:
        notes.append(f"Applications that stay, with their resources: {len(kept)}")
    problems = list(_problems(options, remains, gone))
    left = list(_left(options, remains, kept, with_applications=with_applications))
    if is_forced:
        notes += [what for what, _ in left]
    elif not steps:  # already uninstalled, so nothing gets worse
        notes += [f"{what}; {advice}" for what, advice in left]
    else:
        problems += [f"{what}; {advice}" for what, advice in left]
    return Plan(tuple(steps), tuple(notes), tuple(problems))


def needs_finalizer(app: Manifest) -> bool:
    return not OF_RESOURCES & set(app["metadata"].get("finalizers") or ())


def _stays(
    key: ResourceKey, options: InstallOptions, remains: Remains, kept: Sequence[Manifest], *, with_applications: bool
) -> str:
    """Return why an object is kept; empty if it is deleted."""
    if key.group_kind in (SECRET, CONFIG_MAP) and not with_applications:
        return "it contains login data"
    if key.group_kind not in (DEFINITION, NAMESPACE):
        return ""
    if not with_applications:
        return "it contains Applications and settings" if key.group_kind == NAMESPACE else "Applications need it"
    if key.group_kind == NAMESPACE:
        return "it contains Applications" if any(_is_in(each, key.name) for each in kept) else ""
    if remains.has_argocd:
        return "an Argo CD needs it"
    projects = [each for each in remains.projects if not _is_in(each, options.namespace)]
    others = kept if key.name.startswith("applications.") else projects
    return f"{_named(others)} would be deleted with it" if others else ""


def _doomed(options: InstallOptions, remains: Remains, kept: Sequence[Manifest], *, with_applications: bool) -> str:
    """Return the namespace that is deleted with everything in it; empty if none is."""
    key = ResourceKey(*NAMESPACE, "", options.namespace)
    live = remains.live.live.get(key)
    if live is None or not is_ours(live):
        return ""
    return "" if _stays(key, options, remains, kept, with_applications=with_applications) else key.name


def _not_ours(key: ResourceKey, doomed: str) -> str:
    if doomed and key.namespace == doomed:
        return f"{key.kind} {key.name} is deleted with namespace {doomed}, although argosy install did not create it"
    return f"{key.kind} {key.name} stays: argosy install did not create it"


def _says(manifest: Manifest, annotation: str) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(annotation) or "")


def _is_in(manifest: Manifest, namespace: str) -> bool:
    return bool(manifest["metadata"].get("namespace") == namespace)


def _problems(options: InstallOptions, remains: Remains, gone: Sequence[Manifest]) -> Iterator[str]:
    for place in elsewhere(options, remains.live):  # its ClusterRoles have the same names and would be deleted
        yield f"argosy is installed in namespace {place}; uninstall it there: argosy uninstall --namespace {place}"
    if gone and not remains.is_delivering:
        yield (
            f"no argosy controller runs that could delete the resources of {_named(gone)}; "
            f"{_ways(options, gone)}, then run this again"
        )


def _ways(options: InstallOptions, apps: Sequence[Manifest]) -> str:
    """Describe how to delete Applications while no controller runs."""
    return f"start one (argosy controller --namespace {options.namespace}), or {_without_engine(options, apps)}"


def _without_engine(options: InstallOptions, apps: Sequence[Manifest]) -> str:
    name = "NAME…"
    if len(apps) == 1:
        name = str(apps[0]["metadata"]["name"]) if _is_in(apps[0], options.namespace) else _named(apps)
    return f"delete them and keep their resources: argosy app delete {name} --cascade=false"


def _left(
    options: InstallOptions, remains: Remains, kept: Sequence[Manifest], *, with_applications: bool
) -> Iterator[tuple[str, str]]:
    """Yield each group of Applications that would be orphaned, and the advice; --force accepts it."""
    theirs = [each for each in kept if remains.is_theirs(each)]
    if adopted := [each for each in theirs if _says(each, ENGINE) == ARGOSY and _says(each, SKIP_RECONCILE) == "true"]:
        yield (
            f"{_named(adopted)} would not be delivered any more: {SKIP_RECONCILE} makes Argo CD skip them",
            "return them first with argosy app hand-back, or use --force to accept that",
        )
    ours = [each for each in kept if not remains.is_theirs(each)]
    held = [each for each in ours if any(map(is_served, each["metadata"].get("finalizers") or ()))]
    if served := [each for each in held if remains.is_delivered(each)]:
        advice = "delete them first, or use --applications" if remains.is_delivering else _ways(options, served)
        yield (
            f"{_named(served)} could not be deleted any more: no controller would handle their finalizers",
            f"{advice}, or use --force to accept that",
        )
    if idle := [each for each in (ours if with_applications else held) if not remains.is_delivered(each)]:
        yield (
            f"{_named(idle)} would stay: argosy does not deliver them, so it cannot delete their resources",
            f"remove {SKIP_RECONCILE} and {ENGINE} from them first, or {_without_engine(options, idle)}, "
            "or use --force to accept that",
        )


def _named(apps: Sequence[Manifest]) -> str:
    names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in apps[:MOST_NAMED]]
    more = f" and {len(apps) - MOST_NAMED} more" if len(apps) > MOST_NAMED else ""
    return f"{', '.join(names)}{more}"


def _deletion(live: Manifest) -> Step:
    return Step(Verb.DELETE, key_of(live), live, (), str(live["metadata"].get("uid", "")))
