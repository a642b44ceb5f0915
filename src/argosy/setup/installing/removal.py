"""What takes argosy out of a cluster.

In: what is there. Out: a Plan of deletions. Never: I/O; what an Application delivered, unless told so; a definition
that an Argo CD or anybody's object needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from argosy.model.annotations import ENGINE
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import ResourceKey
from argosy.setup.delivery.plan import Verb
from argosy.setup.installing.manifests import DEFINITION, NAMESPACE
from argosy.setup.installing.options import InstallOptions
from argosy.setup.installing.plan import CONFIG_MAP, SECRET, Plan, Step
from argosy.setup.installing.survey import Remains
from argosy.setup.installing.words import is_ours

OURSELVES: Final = "argosy"
FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"
FINALIZERS: Final = (FINALIZER, "foreground-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io")
MOST_NAMED: Final = 5


def make_removal(options: InstallOptions, remains: Remains, *, with_applications: bool, is_forced: bool) -> Plan:
    gone = _delivered(options, remains) if with_applications else []
    kept = [each for each in remains.applications if each not in gone]
    steps = [_deletion(each) for each in gone]
    notes: list[str] = []
    # What runs goes before its rights, in the order against that of the installation.
    for key, live in reversed(list(remains.live.live.items())):
        if not is_ours(live):
            notes += [f"{key.kind} {key.name} stays: the installation did not make it"]
        elif why := _stays(key, options, remains, kept, with_applications=with_applications):
            notes.append(f"{key.kind} {key.name} stays: {why}")
        else:
            steps.append(_deletion(live))
    steps += [_deletion(each) for each in remains.leases]
    steps.sort(key=lambda step: step.key.group_kind in (DEFINITION, NAMESPACE))
    if kept:
        notes.append(f"Applications that stay, with all that they delivered: {len(kept)}")
    problems = _problems(remains, gone, kept, is_forced=is_forced)
    return Plan(tuple(steps), tuple(notes), tuple(problems))


def needs_finalizer(app: Manifest) -> bool:
    return not any(each.startswith(FINALIZER) for each in app["metadata"].get("finalizers") or ())


def _delivered(options: InstallOptions, remains: Remains) -> list[Manifest]:
    """The Applications that argosy delivers: beside an Argo CD only those that say so."""
    here = [each for each in remains.applications if each["metadata"]["namespace"] == options.namespace]
    if not remains.has_argocd:
        return here
    return [each for each in here if (each["metadata"].get("annotations") or {}).get(ENGINE) == OURSELVES]


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


def _is_in(manifest: Manifest, namespace: str) -> bool:
    return bool(manifest["metadata"].get("namespace") == namespace)


def _problems(
    remains: Remains, gone: Sequence[Manifest], kept: Sequence[Manifest], *, is_forced: bool
) -> Iterator[str]:
    if gone and not remains.is_delivering:
        yield (
            f"no engine of argosy runs that could take away what {_named(gone)} delivered; "
            "start it, or leave --applications out"
        )
    held = [each for each in kept if set(each["metadata"].get("finalizers") or ()) & set(FINALIZERS)]
    if held and not remains.has_argocd and not is_forced:
        yield (
            f"{_named(held)} could not be deleted any more: nobody would serve their finalizers; "
            "delete them first, give --applications, or --force to leave them so"
        )


def _named(apps: Sequence[Manifest]) -> str:
    names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in apps[:MOST_NAMED]]
    more = f" and {len(apps) - MOST_NAMED} more" if len(apps) > MOST_NAMED else ""
    return f"{', '.join(names)}{more}"


def _deletion(live: Manifest) -> Step:
    return Step(Verb.DELETE, key_of(live), live, (), str(live["metadata"].get("uid", "")))
