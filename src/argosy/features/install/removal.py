"""What takes argosy out of a cluster.

In: what is there. Out: a Plan of deletions. Never: I/O; what an Application delivered, unless told so; a definition
that an Argo CD or anybody's object needs.
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
    "namespace {place} goes with everything in it: projects, settings, accounts, Secrets of repositories and clusters;"
    " argosy admin export --secrets --all-settings -n {place} keeps them"
)


def make_removal(options: InstallOptions, remains: Remains, *, with_applications: bool, is_forced: bool) -> Plan:
    gone = [each for each in remains.applications if remains.is_delivered(each)] if with_applications else []
    kept = [each for each in remains.applications if each not in gone]
    steps = [_deletion(each) for each in gone]
    place = _doomed(options, remains, kept, with_applications=with_applications)
    notes = [EMPTIED.format(place=place)] if place else []
    # What runs goes before its rights, in the order against that of the installation.
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
        notes.append(f"Applications that stay, with all that they delivered: {len(kept)}")
    problems = list(_problems(options, remains, gone))
    left = list(_left(options, remains, kept, with_applications=with_applications))
    if is_forced:
        notes += [what for what, _ in left]
    elif not steps:  # it is out already, and nothing becomes worse
        notes += [f"{what}; {advice}" for what, advice in left]
    else:
        problems += [f"{what}; {advice}" for what, advice in left]
    return Plan(tuple(steps), tuple(notes), tuple(problems))


def needs_finalizer(app: Manifest) -> bool:
    return not OF_RESOURCES & set(app["metadata"].get("finalizers") or ())


def _stays(
    key: ResourceKey, options: InstallOptions, remains: Remains, kept: Sequence[Manifest], *, with_applications: bool
) -> str:
    """Why; empty: it does not."""
    if key.group_kind in (SECRET, CONFIG_MAP) and not with_applications:
        return "it says who may sign in"
    if key.group_kind not in (DEFINITION, NAMESPACE):
        return ""
    if not with_applications:
        return "Applications and settings are in it" if key.group_kind == NAMESPACE else "Applications are of it"
    if key.group_kind == NAMESPACE:
        return "Applications are in it" if any(_is_in(each, key.name) for each in kept) else ""
    if remains.has_argocd:
        return "an Argo CD needs it"
    projects = [each for each in remains.projects if not _is_in(each, options.namespace)]
    others = kept if key.name.startswith("applications.") else projects
    return f"{_named(others)} would go with it" if others else ""


def _doomed(options: InstallOptions, remains: Remains, kept: Sequence[Manifest], *, with_applications: bool) -> str:
    """The namespace that goes, and everything in it, whoever made that; empty: none."""
    key = ResourceKey(*NAMESPACE, "", options.namespace)
    live = remains.live.live.get(key)
    if live is None or not is_ours(live):
        return ""
    return "" if _stays(key, options, remains, kept, with_applications=with_applications) else key.name


def _not_ours(key: ResourceKey, doomed: str) -> str:
    if doomed and key.namespace == doomed:
        return f"{key.kind} {key.name} goes with namespace {doomed}, though the installation did not make it"
    return f"{key.kind} {key.name} stays: the installation did not make it"


def _says(manifest: Manifest, annotation: str) -> str:
    return str((manifest["metadata"].get("annotations") or {}).get(annotation) or "")


def _is_in(manifest: Manifest, namespace: str) -> bool:
    return bool(manifest["metadata"].get("namespace") == namespace)


def _problems(options: InstallOptions, remains: Remains, gone: Sequence[Manifest]) -> Iterator[str]:
    for place in elsewhere(options, remains.live):  # its rights have the same names, and would go from under it
        yield f"argosy is installed in namespace {place}; take it out there: argosy uninstall --namespace {place}"
    if gone and not remains.is_delivering:
        yield (
            f"no engine of argosy runs that could take away what {_named(gone)} delivered; "
            f"{_ways(options, gone)}, then run this again"
        )


def _ways(options: InstallOptions, apps: Sequence[Manifest]) -> str:
    """To be rid of Applications where no engine runs."""
    return f"start one (argosy controller --namespace {options.namespace}), or {_without_engine(options, apps)}"


def _without_engine(options: InstallOptions, apps: Sequence[Manifest]) -> str:
    name = "NAME…"
    if len(apps) == 1:
        name = str(apps[0]["metadata"]["name"]) if _is_in(apps[0], options.namespace) else _named(apps)
    return f"delete them and keep what they delivered: argosy app delete {name} --cascade=false"


def _left(
    options: InstallOptions, remains: Remains, kept: Sequence[Manifest], *, with_applications: bool
) -> Iterator[tuple[str, str]]:
    """What would be nobody's business any more, and what to do about it; --force leaves it so."""
    theirs = [each for each in kept if remains.is_theirs(each)]
    if adopted := [each for each in theirs if _says(each, ENGINE) == ARGOSY and _says(each, SKIP_RECONCILE) == "true"]:
        yield (
            f"{_named(adopted)} would be delivered by nobody: {SKIP_RECONCILE} keeps the Argo CD off them",
            "give them back first with argosy app hand-back, or give --force to leave them so",
        )
    ours = [each for each in kept if not remains.is_theirs(each)]
    held = [each for each in ours if any(map(is_served, each["metadata"].get("finalizers") or ()))]
    if served := [each for each in held if remains.is_delivered(each)]:
        advice = "delete them first, or give --applications" if remains.is_delivering else _ways(options, served)
        yield (
            f"{_named(served)} could not be deleted any more: nobody would serve their finalizers",
            f"{advice}, or give --force to leave them so",
        )
    if idle := [each for each in (ours if with_applications else held) if not remains.is_delivered(each)]:
        yield (
            f"{_named(idle)} would stay: argosy does not deliver them, so it cannot take away what they delivered",
            f"take {SKIP_RECONCILE} and {ENGINE} off them first, or {_without_engine(options, idle)}, "
            "or give --force to leave them so",
        )


def _named(apps: Sequence[Manifest]) -> str:
    names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in apps[:MOST_NAMED]]
    more = f" and {len(apps) - MOST_NAMED} more" if len(apps) > MOST_NAMED else ""
    return f"{', '.join(names)}{more}"


def _deletion(live: Manifest) -> Step:
    return Step(Verb.DELETE, key_of(live), live, (), str(live["metadata"].get("uid", "")))
