"""Plan of a setup: the changes that argosy.yaml requires in a cluster.

In: a setup request and live objects. Out: a plan. Never: does I/O; changes a field that was not requested; reveals a
secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from argosy.features.health_checks.argocd_install.health_settings_object import HealthSettings
from argosy.features.health_checks.argocd_install.installed_checks_annotation import build_install_patch
from argosy.features.health_checks.argocd_install.merge import RequestedHealthCheck
from argosy.features.health_checks.argocd_install.merge import list_changes as check_changes
from argosy.features.setup.delivery import desired_manifests, rbac_policy
from argosy.gitops.application.url_credential_detection import PLACEHOLDER_URL
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, DeliveryFile, SyncMode
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.change_sentences import describe_changes
from argosy.kube.patch.live_to_desired_merge_patch import build_update_patch
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NAMESPACE

HIDDEN_VALUE: Final = "(hidden)"
PUBLIC_SECRET_FIELDS: Final = ("type", "url", "username")  # of a repository's Secret
ENVIRONMENT_NAMES: Final = {
    "prod": "production", "prd": "production",
    "stage": "staging", "stg": "staging",
    "dev": "development", "tst": "test",
}  # fmt: skip


class ChangeVerb(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"


class SetupPart(StrEnum):
    """Parts of a setup, in apply order."""

    NAMESPACE = "namespace"
    ROLE_BINDING = "rolebinding"
    REPOSITORY = "repository"
    HEALTH = "health checks"
    POLICY = "policy"
    APPLICATION = "application"


@dataclass(frozen=True)
class SetupRequest:
    """The delivery file with its health checks and secrets, loaded completely."""

    delivery: DeliveryFile
    checks: tuple[RequestedHealthCheck, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the repository Secret; empty: no Secret
    unread: tuple[str, ...] = ()  # messages about unreadable secrets


@dataclass(frozen=True)
class SetupState:
    """The live objects of a setup."""

    installation: ArgoCDInstallation
    live_objects: Mapping[ResourceKey, Manifest]
    repositories: Sequence[Manifest] = ()  # repository Secrets of Argo CD


@dataclass(frozen=True)
class SetupChange:
    environment: str  # empty: cluster-wide
    part: SetupPart
    key: ResourceKey
    verb: ChangeVerb
    manifest: Manifest = field(repr=False)  # for an update, the merge patch
    differences: tuple[str, ...] = ()
    version: str = ""  # resourceVersion of the live object that the change is based on
    uid: str = ""

    @property
    def redacted_manifest(self) -> Manifest:
        """The manifest with hidden secret values."""
        data = self.manifest.get("data")
        if self.part is not SetupPart.REPOSITORY or not isinstance(data, Mapping):
            return self.manifest
        decoded_data = desired_manifests.decode_secret_data(self.manifest)
        redacted_data = {
            name: text if name in PUBLIC_SECRET_FIELDS else HIDDEN_VALUE for name, text in decoded_data.items()
        }
        return {**{name: value for name, value in self.manifest.items() if name != "data"}, "stringData": redacted_data}


@dataclass(frozen=True)
class SetupPlan:
    installation: ArgoCDInstallation
    changes: tuple[SetupChange, ...]
    notes: tuple[str, ...] = ()  # warnings for the user
    problems: tuple[str, ...] = ()  # errors to fix before the plan can run

    @property
    def to_write(self) -> list[SetupChange]:
        return [change for change in self.changes if change.verb is not ChangeVerb.UNCHANGED]

    def count(self, verb: ChangeVerb) -> int:
        return sum(change.verb is verb for change in self.changes)


def list_managed_keys(delivery: DeliveryFile, installation: ArgoCDInstallation) -> list[ResourceKey]:
    """List the keys of all objects that a plan depends on."""
    keys = [installation.settings_target, rbac_policy.policy_object_key(installation)]
    for environment in delivery.environments:
        keys.append(ResourceKey(*NAMESPACE, "", environment.namespace))
        keys.append(ResourceKey(*desired_manifests.ROLE_BINDING, environment.namespace, desired_manifests.BINDING_NAME))
        keys.append(key_of(desired_manifests.build_application(delivery, environment, installation)))
    return list(dict.fromkeys(keys))


def build_setup_plan(request: SetupRequest, live: SetupState) -> SetupPlan:
    delivery, installation = request.delivery, live.installation
    changes: list[SetupChange] = []
    seen: set[ResourceKey] = set()
    for environment in delivery.environments:
        for change in _plan_environment(delivery, environment, live):
            if change.key not in seen:  # two environments may share a namespace
                changes.append(change)
                seen.add(change.key)
    changes += _plan_cluster(request, live)
    notes = (*_list_warnings(delivery), *_list_overridden_checks(request.checks, live), *request.unread)
    return SetupPlan(installation, tuple(changes), notes, tuple(_list_problems(delivery, live)))


def _plan_environment(
    delivery: DeliveryFile, environment: DeliveryEnvironment, live: SetupState
) -> Iterator[SetupChange]:
    name, installation = environment.name, live.installation
    yield _plan_change(
        name, SetupPart.NAMESPACE, desired_manifests.build_namespace(environment.namespace), live, _update_labels
    )
    yield _plan_change(
        name,
        SetupPart.ROLE_BINDING,
        desired_manifests.build_role_binding(environment.namespace, installation),
        live,
        _update_subjects,
    )
    desired_application = desired_manifests.build_application(delivery, environment, installation)
    is_manual = environment.sync is SyncMode.MANUAL
    yield _plan_change(
        name,
        SetupPart.APPLICATION,
        desired_application,
        live,
        _update_manual_application if is_manual else _update_application,
    )


def _plan_change(
    environment: str, part: SetupPart, desired_manifest: Manifest, live: SetupState, build_update: Any
) -> SetupChange:
    key = key_of(desired_manifest)
    live_object = live.live_objects.get(key)
    if live_object is None:
        return SetupChange(environment, part, key, ChangeVerb.CREATE, desired_manifest)
    return _build_update_change(
        environment,
        part,
        key,
        live_object,
        build_update_patch(live_object, build_update(desired_manifest, live_object)),
        desired_manifest,
    )


def _build_update_change(
    environment: str,
    part: SetupPart,
    key: ResourceKey,
    live_object: Manifest,
    patch: Manifest | None,
    desired_manifest: Manifest,
) -> SetupChange:
    metadata = live_object["metadata"]
    version, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
    if patch is None:
        return SetupChange(environment, part, key, ChangeVerb.UNCHANGED, desired_manifest, (), version, uid)
    return SetupChange(
        environment, part, key, ChangeVerb.UPDATE, patch, tuple(describe_changes(live_object, patch)), version, uid
    )


def _update_labels(desired_manifest: Manifest, live_manifest: Manifest) -> Manifest:
    """Update only the labels of an existing namespace; its display name belongs to the user."""
    return {"metadata": {"labels": _labels_without_owner(desired_manifest)}}


def _update_subjects(desired_manifest: Manifest, live_manifest: Manifest) -> Manifest:
    """Add our subject to the binding and keep the others."""
    subjects = live_manifest.get("subjects") or []
    our_subject = desired_manifest["subjects"][0]
    is_present = any({**live_subject, "apiGroup": ""} == {**our_subject, "apiGroup": ""} for live_subject in subjects)
    return {"subjects": subjects if is_present else [*subjects, our_subject]}


def _update_application(desired_manifest: Manifest, live_manifest: Manifest) -> Manifest:
    return {"metadata": {"labels": _labels_without_owner(desired_manifest)}, "spec": desired_manifest["spec"]}


def _update_manual_application(desired_manifest: Manifest, live_manifest: Manifest) -> Manifest:
    policy = {**desired_manifest["spec"]["syncPolicy"], "automated": None}
    manual = {**desired_manifest, "spec": {**desired_manifest["spec"], "syncPolicy": policy}}
    return _update_application(manual, live_manifest)


def _labels_without_owner(desired_manifest: Manifest) -> dict[str, str]:
    """Return the labels without the ownership label, because an update must not claim a foreign object."""
    return {
        name: value
        for name, value in desired_manifest["metadata"]["labels"].items()
        if name != desired_manifests.MANAGED_BY
    }


# -- cluster-wide changes ---------------------------------------------------------------------------------------------


def _plan_cluster(request: SetupRequest, live: SetupState) -> Iterator[SetupChange]:
    if request.values:
        yield _plan_repository(request, live)
    if request.checks:
        yield _plan_health_checks(request.checks, live)
    if request.delivery.rbac:
        yield _plan_policy(request, live)


def _plan_repository(request: SetupRequest, live: SetupState) -> SetupChange:
    """Reuse an existing repository Secret for this URL, whoever created it."""
    key = desired_manifests.build_repository_key(request.delivery, live.installation)
    live_secret = next(
        (secret for secret in live.repositories if _is_for(secret, request.delivery.repository.url)), None
    )
    if live_secret is None:
        return SetupChange(
            "",
            SetupPart.REPOSITORY,
            key,
            ChangeVerb.CREATE,
            desired_manifests.build_repository_secret(key, request.values),
        )
    patch = build_update_patch(live_secret, {"data": desired_manifests.encode_secret_data(request.values)})
    desired_manifest = desired_manifests.build_repository_secret(key_of(live_secret), request.values)
    change = _build_update_change("", SetupPart.REPOSITORY, key_of(live_secret), live_secret, patch, desired_manifest)
    changed = tuple(f"{name}: changed" for name in (patch or {}).get("data", {}))
    return SetupChange(
        "", SetupPart.REPOSITORY, change.key, change.verb, change.manifest, changed, change.version, change.uid
    )


def _is_for(secret: Manifest, url: str) -> bool:
    # argo: addresses that differ in a trailing .git are the same repository
    return desired_manifests.decode_secret_data(secret).get("url", "").removesuffix(".git") == url.removesuffix(".git")


def _plan_health_checks(checks: Sequence[RequestedHealthCheck], live: SetupState) -> SetupChange:
    place = HealthSettings(live.installation, live.live_objects[live.installation.settings_target])
    patch = build_install_patch(place, checks)
    differences = tuple(change.description for change in check_changes(place.scripts, checks) if change.is_needed)
    if kept := [of for of in place.scripts if of not in {check.group_kind for check in checks}]:
        differences += (f"keeps {', '.join(str(of) for of in kept)}",)
    verb = ChangeVerb.UPDATE if patch else ChangeVerb.UNCHANGED
    return SetupChange(
        "", SetupPart.HEALTH, live.installation.settings_target, verb, patch or {}, differences if patch else ()
    )


def _plan_policy(request: SetupRequest, live: SetupState) -> SetupChange:
    rbac, installation = request.delivery.rbac, live.installation
    assert rbac is not None
    key = rbac_policy.policy_object_key(installation)
    live_policy = live.live_objects.get(key)
    before = rbac_policy.read_policy_texts(installation, live_policy)
    after = rbac_policy.merge_policy(before, rbac, request.delivery.product)
    patch = rbac_policy.build_policy_patch(installation, before, after)
    verb = ChangeVerb.UNCHANGED if patch is None else ChangeVerb.UPDATE if live_policy else ChangeVerb.CREATE
    return SetupChange(
        "", SetupPart.POLICY, key, verb, patch or {}, tuple(rbac_policy.describe_policy_changes(before, after))
    )


# -- notes and problems -----------------------------------------------------------------------------------------------


def _list_warnings(delivery: DeliveryFile) -> Iterator[str]:
    if delivery.repository.url == PLACEHOLDER_URL:
        yield f"repository.url is still the placeholder {PLACEHOLDER_URL}; replace it with the URL of your repository"
    for environment in delivery.environments:
        if _expand_environment(environment.application) != _expand_environment(environment.namespace):
            finding = f'Application "{environment.application}" deploys to namespace "{environment.namespace}"'
            advice = f"fix environments.{environment.name}.namespace or its application"
            yield f"{environment.name}: {finding}: is the different name intended? If not, {advice}"


def _expand_environment(name: str) -> str:
    """Expand the environment in a name, so that `fraud-prod` equals `fraud-production`."""
    product, dash, environment = name.rpartition("-")
    return product + dash + ENVIRONMENT_NAMES.get(environment, environment)


def _list_overridden_checks(checks: Sequence[RequestedHealthCheck], live: SetupState) -> Iterator[str]:
    """Warn about overridden checks. argo: the operator copies extraConfig last, so it overrides other settings."""
    if live.installation.has_operator:
        location = HealthSettings(live.installation, live.live_objects[live.installation.settings_target])
        for check in checks:
            if check.key in location.data:
                yield f"{check.name}: spec.extraConfig holds {check.key}, which overrides it; remove it there"


def _list_problems(delivery: DeliveryFile, live: SetupState) -> Iterator[str]:
    for key, live_object in live.live_objects.items():
        if live_object["metadata"].get("deletionTimestamp"):
            yield f"{key} is being deleted; wait until it is deleted, or find out what blocks it"
    for name in dict.fromkeys(environment.namespace for environment in delivery.environments):
        found_binding = live.live_objects.get(
            ResourceKey(*desired_manifests.ROLE_BINDING, name, desired_manifests.BINDING_NAME)
        )
        role = (found_binding or {}).get("roleRef") or {}
        if found_binding and (role.get("kind"), role.get("name")) != ("ClusterRole", "admin"):
            # k8s: roleRef is immutable
            problem = f"is for {role.get('kind')} {role.get('name')}, not for ClusterRole admin"
            yield f"{key_of(found_binding)} {problem}; delete or rename it if it is not needed"
