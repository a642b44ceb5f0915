"""Plan of a setup: the changes that argosy.yaml requires in a cluster.

In: a setup request and live objects. Out: a plan. Never: does I/O; changes a field that was not requested; reveals a
secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from argosy.features.health_checks.argocd_install.merge import Check
from argosy.features.health_checks.argocd_install.merge import changes as check_changes
from argosy.features.health_checks.argocd_install.ownership_marks import with_marks
from argosy.features.health_checks.argocd_install.settings_location import Place
from argosy.features.setup.delivery import access_policy, desired
from argosy.gitops.application.url_credentials import PLACEHOLDER
from argosy.gitops.coexistence.argocd_settings import Installation
from argosy.gitops.delivery_file.values import Delivery, Environment, Sync
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.patch.change_summary import sentences, update

HIDDEN: Final = "(hidden)"
PUBLIC: Final = ("type", "url", "username")  # of a repository's Secret
SHORTENED: Final = {
    "prod": "production", "prd": "production",
    "stage": "staging", "stg": "staging",
    "dev": "development", "tst": "test",
}  # fmt: skip


class Verb(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"


class Part(StrEnum):
    """Parts of a setup, in apply order."""

    NAMESPACE = "namespace"
    ROLE_BINDING = "rolebinding"
    REPOSITORY = "repository"
    HEALTH = "health checks"
    POLICY = "policy"
    APPLICATION = "application"


@dataclass(frozen=True)
class Request:
    """The delivery file with its health checks and secrets, loaded completely."""

    delivery: Delivery
    checks: tuple[Check, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the repository Secret; empty: no Secret
    unread: tuple[str, ...] = ()  # messages about unreadable secrets


@dataclass(frozen=True)
class Live:
    """The live objects of a setup."""

    installation: Installation
    found: Mapping[ResourceKey, Manifest]
    repositories: Sequence[Manifest] = ()  # repository Secrets of Argo CD


@dataclass(frozen=True)
class Change:
    environment: str  # empty: cluster-wide
    part: Part
    key: ResourceKey
    verb: Verb
    manifest: Manifest = field(repr=False)  # for an update, the merge patch
    differences: tuple[str, ...] = ()
    version: str = ""  # resourceVersion of the live object that the change is based on
    uid: str = ""

    @property
    def shown(self) -> Manifest:
        """The manifest with hidden secret values."""
        data = self.manifest.get("data")
        if self.part is not Part.REPOSITORY or not isinstance(data, Mapping):
            return self.manifest
        seen = desired.decoded(self.manifest)
        hidden = {name: text if name in PUBLIC else HIDDEN for name, text in seen.items()}
        return {**{name: value for name, value in self.manifest.items() if name != "data"}, "stringData": hidden}


@dataclass(frozen=True)
class Plan:
    installation: Installation
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()  # warnings for the user
    problems: tuple[str, ...] = ()  # errors to fix before the plan can run

    @property
    def to_write(self) -> list[Change]:
        return [change for change in self.changes if change.verb is not Verb.UNCHANGED]

    def count(self, verb: Verb) -> int:
        return sum(change.verb is verb for change in self.changes)


def asked_keys(delivery: Delivery, installation: Installation) -> list[ResourceKey]:
    """List the keys of all objects that a plan depends on."""
    keys = [installation.key, access_policy.policy_key(installation)]
    for environment in delivery.environments:
        keys.append(ResourceKey(*desired.NAMESPACE, "", environment.namespace))
        keys.append(ResourceKey(*desired.ROLE_BINDING, environment.namespace, desired.BINDING))
        keys.append(key_of(desired.application(delivery, environment, installation)))
    return list(dict.fromkeys(keys))


def make_plan(request: Request, live: Live) -> Plan:
    delivery, installation = request.delivery, live.installation
    changes: list[Change] = []
    seen: set[ResourceKey] = set()
    for environment in delivery.environments:
        for change in _of_environment(delivery, environment, live):
            if change.key not in seen:  # two environments may share a namespace
                changes.append(change)
                seen.add(change.key)
    changes += _of_cluster(request, live)
    notes = (*_questions(delivery), *_overruled(request.checks, live), *request.unread)
    return Plan(installation, tuple(changes), notes, tuple(_problems(delivery, live)))


def _of_environment(delivery: Delivery, environment: Environment, live: Live) -> Iterator[Change]:
    name, installation = environment.name, live.installation
    yield _change(name, Part.NAMESPACE, desired.namespace(environment.namespace), live, _labels)
    yield _change(name, Part.ROLE_BINDING, desired.role_binding(environment.namespace, installation), live, _subjects)
    wanted = desired.application(delivery, environment, installation)
    is_manual = environment.sync is Sync.MANUAL
    yield _change(name, Part.APPLICATION, wanted, live, _application_manual if is_manual else _application)


def _change(environment: str, part: Part, wanted: Manifest, live: Live, asked: Any) -> Change:
    key = key_of(wanted)
    found = live.found.get(key)
    if found is None:
        return Change(environment, part, key, Verb.CREATE, wanted)
    return _update(environment, part, key, found, update(found, asked(wanted, found)), wanted)


def _update(
    environment: str, part: Part, key: ResourceKey, found: Manifest, patch: Manifest | None, wanted: Manifest
) -> Change:
    metadata = found["metadata"]
    version, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
    if patch is None:
        return Change(environment, part, key, Verb.UNCHANGED, wanted, (), version, uid)
    return Change(environment, part, key, Verb.UPDATE, patch, tuple(sentences(found, patch)), version, uid)


def _labels(wanted: Manifest, found: Manifest) -> Manifest:
    """Update only the labels of an existing namespace; its display name belongs to the user."""
    return {"metadata": {"labels": _without_mark(wanted)}}


def _subjects(wanted: Manifest, found: Manifest) -> Manifest:
    """Add our subject to the binding and keep the others."""
    subjects = found.get("subjects") or []
    ours = wanted["subjects"][0]
    is_there = any({**each, "apiGroup": ""} == {**ours, "apiGroup": ""} for each in subjects)
    return {"subjects": subjects if is_there else [*subjects, ours]}


def _application(wanted: Manifest, found: Manifest) -> Manifest:
    return {"metadata": {"labels": _without_mark(wanted)}, "spec": wanted["spec"]}


def _application_manual(wanted: Manifest, found: Manifest) -> Manifest:
    policy = {**wanted["spec"]["syncPolicy"], "automated": None}
    return _application({**wanted, "spec": {**wanted["spec"], "syncPolicy": policy}}, found)


def _without_mark(wanted: Manifest) -> dict[str, str]:
    """Return the labels without the ownership label, because an update must not claim a foreign object."""
    return {name: value for name, value in wanted["metadata"]["labels"].items() if name != desired.MANAGED_BY}


# -- cluster-wide changes ---------------------------------------------------------------------------------------------


def _of_cluster(request: Request, live: Live) -> Iterator[Change]:
    if request.values:
        yield _repository(request, live)
    if request.checks:
        yield _health(request.checks, live)
    if request.delivery.rbac:
        yield _policy(request, live)


def _repository(request: Request, live: Live) -> Change:
    """Reuse an existing repository Secret for this URL, whoever created it."""
    key = desired.repository_key(request.delivery, live.installation)
    found = next((each for each in live.repositories if _is_for(each, request.delivery.repository.url)), None)
    if found is None:
        return Change("", Part.REPOSITORY, key, Verb.CREATE, desired.repository_secret(key, request.values))
    patch = update(found, {"data": desired.encoded(request.values)})
    wanted = desired.repository_secret(key_of(found), request.values)
    change = _update("", Part.REPOSITORY, key_of(found), found, patch, wanted)
    changed = tuple(f"{name}: changed" for name in (patch or {}).get("data", {}))
    return Change("", Part.REPOSITORY, change.key, change.verb, change.manifest, changed, change.version, change.uid)


def _is_for(secret: Manifest, url: str) -> bool:
    # argo: addresses that differ in a trailing .git are the same repository
    return desired.decoded(secret).get("url", "").removesuffix(".git") == url.removesuffix(".git")


def _health(checks: Sequence[Check], live: Live) -> Change:
    place = Place(live.installation, live.found[live.installation.key])
    patch = with_marks(place, checks)
    differences = tuple(change.sentence for change in check_changes(place.scripts, checks) if change.is_needed)
    if kept := [of for of in place.scripts if of not in {check.of for check in checks}]:
        differences += (f"keeps {', '.join(str(of) for of in kept)}",)
    verb = Verb.UPDATE if patch else Verb.UNCHANGED
    return Change("", Part.HEALTH, live.installation.key, verb, patch or {}, differences if patch else ())


def _policy(request: Request, live: Live) -> Change:
    rbac, installation = request.delivery.rbac, live.installation
    assert rbac is not None
    key = access_policy.policy_key(installation)
    found = live.found.get(key)
    before = access_policy.texts_of(installation, found)
    after = access_policy.merged(before, rbac, request.delivery.product)
    patch = access_policy.patch_of(installation, before, after)
    verb = Verb.UNCHANGED if patch is None else Verb.UPDATE if found else Verb.CREATE
    return Change("", Part.POLICY, key, verb, patch or {}, tuple(access_policy.added(before, after)))


# -- notes and problems -----------------------------------------------------------------------------------------------


def _questions(delivery: Delivery) -> Iterator[str]:
    if delivery.repository.url == PLACEHOLDER:
        yield f"repository.url is still the placeholder {PLACEHOLDER}; replace it with the URL of your repository"
    for environment in delivery.environments:
        if _usual(environment.application) != _usual(environment.namespace):
            what = f'Application "{environment.application}" deploys to namespace "{environment.namespace}"'
            how = f"fix environments.{environment.name}.namespace or its application"
            yield f"{environment.name}: {what}: is the different name intended? If not, {how}"


def _usual(name: str) -> str:
    """Expand the environment in a name, so that `fraud-prod` equals `fraud-production`."""
    product, dash, environment = name.rpartition("-")
    return product + dash + SHORTENED.get(environment, environment)


def _overruled(checks: Sequence[Check], live: Live) -> Iterator[str]:
    """Warn about overridden checks. argo: the operator copies extraConfig last, so it overrides other settings."""
    if live.installation.is_operated:
        place = Place(live.installation, live.found[live.installation.key])
        for check in checks:
            if check.key in place.data:
                yield f"{check.name}: spec.extraConfig holds {check.key}, which overrides it; remove it there"


def _problems(delivery: Delivery, live: Live) -> Iterator[str]:
    for key, found in live.found.items():
        if found["metadata"].get("deletionTimestamp"):
            yield f"{key} is being deleted; wait until it is deleted, or find out what blocks it"
    for name in dict.fromkeys(environment.namespace for environment in delivery.environments):
        found_binding = live.found.get(ResourceKey(*desired.ROLE_BINDING, name, desired.BINDING))
        role = (found_binding or {}).get("roleRef") or {}
        if found_binding and (role.get("kind"), role.get("name")) != ("ClusterRole", "admin"):
            # k8s: roleRef is immutable
            what = f"is for {role.get('kind')} {role.get('name')}, not for ClusterRole admin"
            yield f"{key_of(found_binding)} {what}; delete or rename it if it is not needed"
