"""Plan of an installation: the objects to create, update and delete.

In: desired manifests, live objects, and the server's dry-run results. Out: a plan. Never: does I/O; changes objects
that argosy does not own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.install.manifests import build_manifests, build_namespace
from argosy.features.install.options import InstallOptions, has_registry
from argosy.features.setup.delivery.cluster_setup_plan import ChangeVerb
from argosy.gitops.application.argosy_component_labels import (
    CONTROL_NAMESPACE_LABEL,
    is_control_namespace,
    is_part_of_argosy,
)
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.change_sentences import describe_changes
from argosy.kube.patch.merge_patch import diff
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, CRD, DEPLOYMENT, NAMESPACE, SECRET

# Created if missing. Existing ones belong to the user, except for the label by which commands find the namespace.
KINDS_KEPT_IF_PRESENT: Final = (NAMESPACE, SECRET, CONFIG_MAP)
CLUSTER_ROLE_BINDING: Final = GroupKind("rbac.authorization.k8s.io", "ClusterRoleBinding")
SERVER_SET_METADATA: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
LOGIN_SECRET_NAME: Final = "argocd-secret"


@dataclass(frozen=True)
class InstallStep:
    verb: ChangeVerb
    key: ResourceKey
    manifest: Manifest = field(repr=False)
    differences: tuple[str, ...] = ()
    uid: str = ""  # of the object to delete


@dataclass(frozen=True)
class InstallPlan:
    steps: tuple[InstallStep, ...]
    notes: tuple[str, ...] = ()  # information for the user
    problems: tuple[str, ...] = ()  # errors to fix before the plan can run

    @property
    def to_write(self) -> list[InstallStep]:
        return [step for step in self.steps if step.verb is not ChangeVerb.UNCHANGED]

    def count(self, verb: ChangeVerb) -> int:
        return sum(step.verb is verb for step in self.steps)


@dataclass(frozen=True)
class InstallState:
    """Live objects; `predicted` holds the result of a server-side dry-run apply."""

    live: Mapping[ResourceKey, Manifest]
    predicted: Mapping[ResourceKey, Manifest] = field(default_factory=dict)


def needs_dry_run(desired: Manifest, live: Manifest) -> bool:
    """Return True if a dry-run apply is needed to predict the change."""
    return is_part_of_argosy(live) and key_of(desired).group_kind not in KINDS_KEPT_IF_PRESENT


def build_install_plan(options: InstallOptions, state: InstallState) -> InstallPlan:
    desired_manifests = [
        manifest for manifest in build_manifests(options) if not _is_redundant_login_secret(manifest, state)
    ]
    steps = [_build_step(manifest, state) for manifest in desired_manifests]
    keys = {step.key for step in steps}
    steps += [
        InstallStep(ChangeVerb.DELETE, key, {}, (), str(live["metadata"].get("uid", "")))
        for key, live in state.live.items()
        if key not in keys and key.group_kind not in (*KINDS_KEPT_IF_PRESENT, CRD) and is_part_of_argosy(live)
    ]
    notes = [*_list_notes_on_existing_objects(desired_manifests, state), *_list_image_notes(options, steps)]
    return InstallPlan(tuple(steps), tuple(notes), tuple(_list_problems(options, desired_manifests, state)))


def _is_redundant_login_secret(desired: Manifest, state: InstallState) -> bool:
    """Return True for login Secrets if the namespace already has argocd-secret."""
    key = key_of(desired)
    secret = ResourceKey(*SECRET, key.namespace, LOGIN_SECRET_NAME)
    return key.group_kind == SECRET and key not in state.live and secret in state.live


def _build_step(desired: Manifest, state: InstallState) -> InstallStep:
    key = key_of(desired)
    live = state.live.get(key)
    if live is None:
        return InstallStep(ChangeVerb.CREATE, key, desired)
    if key.group_kind == NAMESPACE and not is_control_namespace(live):
        return build_label_step(live, is_control=True)
    predicted = state.predicted.get(key)
    patch = diff(_strip_server_fields(live), _strip_server_fields(predicted)) if predicted is not None else {}
    if not patch:
        return InstallStep(ChangeVerb.UNCHANGED, key, desired)
    return InstallStep(ChangeVerb.UPDATE, key, desired, tuple(describe_changes(live, patch)))


def build_label_step(live: Manifest, *, is_control: bool) -> InstallStep:
    """Build the step that sets or removes only the label by which commands find an existing namespace."""
    labels = {CONTROL_NAMESPACE_LABEL: "true"} if is_control else {}
    differences = describe_changes(
        live, {"metadata": {"labels": {CONTROL_NAMESPACE_LABEL: labels.get(CONTROL_NAMESPACE_LABEL)}}}
    )
    key = key_of(live)
    return InstallStep(ChangeVerb.UPDATE, key, build_namespace(key.name, labels), tuple(differences))


def _strip_server_fields(manifest: Manifest) -> dict[str, Any]:
    """Remove status and the metadata that the server sets."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in SERVER_SET_METADATA}
    return {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}


def _list_notes_on_existing_objects(desired_manifests: Sequence[Manifest], state: InstallState) -> Iterator[str]:
    for key in map(key_of, desired_manifests):
        live = state.live.get(key)
        if live is None or is_part_of_argosy(live):
            continue
        if key.group_kind == NAMESPACE:
            yield f"namespace {key.name} already exists and keeps its labels, such as its Pod security level"
        elif key.group_kind == CRD:
            yield f"{key.name} already exists, for example from an Argo CD, and is not changed"


def _list_image_notes(options: InstallOptions, steps: Sequence[InstallStep]) -> Iterator[str]:
    """Warn about an image without a registry if Pods are created, because nodes may not be able to pull it."""
    creates_pods = any(
        step.key.group_kind == DEPLOYMENT and step.verb in (ChangeVerb.CREATE, ChangeVerb.UPDATE) for step in steps
    )
    if creates_pods and not has_registry(options.image):
        yield (
            f"image {options.image} has no registry: every node must have it or be able to pull it by that name; "
            "otherwise build deploy/Containerfile, push it, and set --image registry.example.com/argosy:TAG"
        )


def list_other_install_namespaces(options: InstallOptions, state: InstallState) -> list[str]:
    """List other namespaces with an installation, according to its ClusterRoleBindings, whose names are fixed."""
    bindings = [
        live for key, live in state.live.items() if key.group_kind == CLUSTER_ROLE_BINDING and is_part_of_argosy(live)
    ]
    namespaces = {
        str(role_subject.get("namespace")) for live in bindings for role_subject in live.get("subjects") or ()
    }
    return sorted(namespaces - {options.namespace})


def _list_problems(
    options: InstallOptions, desired_manifests: Sequence[Manifest], state: InstallState
) -> Iterator[str]:
    for other_namespace in list_other_install_namespaces(options, state):
        yield (
            f"argosy is already installed in namespace {other_namespace}; use --namespace {other_namespace}, "
            "or uninstall it there first"
        )
    for key in map(key_of, desired_manifests):
        live = state.live.get(key)
        if live is None:
            continue
        if live["metadata"].get("deletionTimestamp"):
            yield f"{key} is being deleted; wait until it is deleted"
        elif not is_part_of_argosy(live) and key.group_kind not in (*KINDS_KEPT_IF_PRESENT, CRD):
            yield f"{key} already exists and is not managed by argosy; delete it, or choose another --namespace"
