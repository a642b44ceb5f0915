"""Plan of an installation: the objects to create, update and delete.

In: desired manifests, live objects, and the server's dry-run results. Out: a plan. Never: does I/O; changes objects
that argosy does not own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.install.manifests import DEFINITION, NAMESPACE, manifests, of_namespace
from argosy.features.install.options import InstallOptions, names_registry
from argosy.features.setup.delivery.plan import Verb
from argosy.gitops.application.install_labels import CONTROL, is_control, is_ours
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.change_summary import sentences
from argosy.kube.patch.merge_patch import diff

SECRET, CONFIG_MAP = GroupKind("", "Secret"), GroupKind("", "ConfigMap")
DEPLOYMENT: Final = GroupKind("apps", "Deployment")
# Created if missing. Existing ones belong to the user, except for the label by which commands find the namespace.
KEPT: Final = (NAMESPACE, SECRET, CONFIG_MAP)
BINDING: Final = GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding")
SERVERS_OWN: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
SIGNS_IN: Final = "argocd-secret"


@dataclass(frozen=True)
class Step:
    verb: Verb
    key: ResourceKey
    manifest: Manifest = field(repr=False)
    differences: tuple[str, ...] = ()
    uid: str = ""  # of the object to delete


@dataclass(frozen=True)
class Plan:
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()  # information for the user
    problems: tuple[str, ...] = ()  # errors to fix before the plan can run

    @property
    def to_write(self) -> list[Step]:
        return [step for step in self.steps if step.verb is not Verb.UNCHANGED]

    def count(self, verb: Verb) -> int:
        return sum(step.verb is verb for step in self.steps)


@dataclass(frozen=True)
class Found:
    """Live objects; `predicted` holds the result of a server-side dry-run apply."""

    live: Mapping[ResourceKey, Manifest]
    predicted: Mapping[ResourceKey, Manifest] = field(default_factory=dict)


def is_changed_here(wanted: Manifest, live: Manifest) -> bool:
    """Return True if a dry-run apply is needed to predict the change."""
    return is_ours(live) and key_of(wanted).group_kind not in KEPT


def make_plan(options: InstallOptions, found: Found) -> Plan:
    wanted = [each for each in manifests(options) if not _is_seeded_elsewhere(each, found)]
    steps = [_step(each, found) for each in wanted]
    keys = {step.key for step in steps}
    steps += [
        Step(Verb.DELETE, key, {}, (), str(live["metadata"].get("uid", "")))
        for key, live in found.live.items()
        if key not in keys and key.group_kind not in (*KEPT, DEFINITION) and is_ours(live)
    ]
    notes = [*_notes(wanted, found), *_images(options, steps)]
    return Plan(tuple(steps), tuple(notes), tuple(_problems(options, wanted, found)))


def _is_seeded_elsewhere(wanted: Manifest, found: Found) -> bool:
    """Return True for login Secrets if the namespace already has argocd-secret."""
    key = key_of(wanted)
    secret = ResourceKey(*SECRET, key.namespace, SIGNS_IN)
    return key.group_kind == SECRET and key not in found.live and secret in found.live


def _step(wanted: Manifest, found: Found) -> Step:
    key = key_of(wanted)
    live = found.live.get(key)
    if live is None:
        return Step(Verb.CREATE, key, wanted)
    if key.group_kind == NAMESPACE and not is_control(live):
        return marking(live, is_control=True)
    after = found.predicted.get(key)
    patch = diff(_told(live), _told(after)) if after is not None else {}
    if not patch:
        return Step(Verb.UNCHANGED, key, wanted)
    return Step(Verb.UPDATE, key, wanted, tuple(sentences(live, patch)))


def marking(live: Manifest, *, is_control: bool) -> Step:
    """Build the step that sets or removes only the label by which commands find an existing namespace."""
    labels = {CONTROL: "true"} if is_control else {}
    differences = sentences(live, {"metadata": {"labels": {CONTROL: labels.get(CONTROL)}}})
    key = key_of(live)
    return Step(Verb.UPDATE, key, of_namespace(key.name, labels), tuple(differences))


def _told(manifest: Manifest) -> dict[str, Any]:
    """Remove status and the metadata that the server sets."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in SERVERS_OWN}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}


def _notes(wanted: Sequence[Manifest], found: Found) -> Iterator[str]:
    for key in map(key_of, wanted):
        live = found.live.get(key)
        if live is None or is_ours(live):
            continue
        if key.group_kind == NAMESPACE:
            yield f"namespace {key.name} already exists and keeps its labels, such as its Pod security level"
        elif key.group_kind == DEFINITION:
            yield f"{key.name} already exists, for example from an Argo CD, and is not changed"


def _images(options: InstallOptions, steps: Sequence[Step]) -> Iterator[str]:
    """Warn about an image without a registry if Pods are created, because nodes may not be able to pull it."""
    is_rolled = any(step.key.group_kind == DEPLOYMENT and step.verb in (Verb.CREATE, Verb.UPDATE) for step in steps)
    if is_rolled and not names_registry(options.image):
        yield (
            f"image {options.image} has no registry: every node must have it or be able to pull it by that name; "
            "otherwise build deploy/Containerfile, push it, and set --image registry.example.com/argosy:TAG"
        )


def elsewhere(options: InstallOptions, found: Found) -> list[str]:
    """List other namespaces with an installation, according to its ClusterRoleBindings, whose names are fixed."""
    bindings = [live for key, live in found.live.items() if key.group_kind == BINDING and is_ours(live)]
    places = {str(each.get("namespace")) for live in bindings for each in live.get("subjects") or ()}
    return sorted(places - {options.namespace})


def _problems(options: InstallOptions, wanted: Sequence[Manifest], found: Found) -> Iterator[str]:
    for place in elsewhere(options, found):
        yield f"argosy is already installed in namespace {place}; use --namespace {place}, or uninstall it there first"
    for key in map(key_of, wanted):
        live = found.live.get(key)
        if live is None:
            continue
        if live["metadata"].get("deletionTimestamp"):
            yield f"{key} is being deleted; wait until it is deleted"
        elif not is_ours(live) and key.group_kind not in (*KEPT, DEFINITION):
            yield f"{key} already exists and is not managed by argosy; delete it, or choose another --namespace"
