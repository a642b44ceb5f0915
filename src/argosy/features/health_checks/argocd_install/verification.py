"""Verification that health checks are installed in an Argo CD, with the status of its applications.

In: a cluster, an Argo CD, kinds. Out: a verification and its messages. Never: writes; compares only the beginning of a
script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from argosy.errors import ClusterError, Forbidden
from argosy.features.health_checks.argocd_install.merge import INFERENCE_SERVICE, KEY_PREFIX, kind_in, profile_with
from argosy.features.health_checks.argocd_install.settings_location import FIELD, Place, flags_to, read_place
from argosy.gitops.coexistence.application_refresh import applications_to_show, statuses, table_of
from argosy.gitops.coexistence.argocd_settings import SETTINGS, find_argocd
from argosy.gitops.coexistence.step_messages import Said, Table, banner
from argosy.gitops.health.kind_keys import joined, key_text
from argosy.gitops.health.lint import Finding, lint
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.settings import Check, from_config_maps
from argosy.kube.client import ClusterReader
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

ENVIRONMENTS: Final = ("llmops-dev", "llmops-staging", "llmops-prod")
NAMESPACE: Final = GroupKind("", "Namespace")
APPLY: Final = "argosy health apply"


@dataclass(frozen=True)
class Service:
    """The status of an InferenceService."""

    name: str
    url: str
    ready: str


@dataclass(frozen=True)
class Verification:
    place: Place
    data: Mapping[str, str]  # of argocd-cm
    kinds: tuple[GroupKind, ...]
    applications: Sequence[Manifest] = ()
    services: Mapping[str, Sequence[Service]] | None = None  # by existing namespace

    @property
    def unset(self) -> list[GroupKind]:
        """Kinds without a configured health check."""
        return [of for of in self.kinds if of not in self.place.scripts]

    @property
    def unpropagated(self) -> list[GroupKind]:
        """Kinds whose exact script is not in argocd-cm."""
        scripts = self.place.scripts
        return [of for of in self.kinds if of in scripts and self.data.get(_key(of)) != scripts[of]]

    @cached_property
    def broken(self) -> dict[str, Finding]:
        """Errors of active scripts by location. Argo CD reports Unknown for objects of such a kind.

        For kinds that were not requested, only syntax errors are listed.
        """
        asked = {key_text(*of) for of in self.kinds}
        found = {check.where: _first_error(check) for check in from_config_maps(self.data).checks
                 if check.pattern in asked or not _is_read(check)}  # fmt: skip
        return {where: error for where, error in found.items() if error is not None}

    @property
    def strays(self) -> list[str]:
        """Keys in argocd-cm that the operator will remove, because the ArgoCD resource does not list them."""
        if not self.place.installation.is_operated:
            return []
        kept = {*self.place.data, *map(_key, self.place.scripts)}
        return sorted(key for key in self.data if key.startswith(KEY_PREFIX) and key not in kept)

    @property
    def doubled(self) -> list[GroupKind]:
        """Kinds that the ArgoCD resource lists more than once."""
        found = [of for entry in self.place.entries or () if (of := kind_in(entry))]
        return [of for of in dict.fromkeys(found) if found.count(of) > 1]

    @property
    def is_well(self) -> bool:
        return not (self.unset or self.unpropagated or self.broken)

    def as_data(self) -> dict[str, Any]:
        installation, scripts = self.place.installation, self.place.scripts
        checks = [
            {
                "group": of.group,
                "kind": of.kind,
                "configured": of in scripts,
                "profile": profile_with(of, scripts.get(of, "")),
                "propagated": of in scripts and of not in self.unpropagated,
                "error": _sentence(self.broken[_key(of)]) if _key(of) in self.broken else "",
            }
            for of in self.kinds
        ]
        apps = [dict(zip(("name", "sync", "health"), (each["metadata"]["name"], *statuses(each)), strict=True))
                for each in self.applications]  # fmt: skip
        services = [
            {"namespace": namespace, **vars(service)}
            for namespace, found in (self.services or {}).items()
            for service in found
        ]
        return {
            "kind": "HealthVerification",
            "ok": self.is_well,
            "argocd": {"namespace": installation.namespace, "name": installation.name},
            "operated": installation.is_operated,
            "checks": checks,
            "strayKeys": self.strays,
            "applications": apps,
            "inferenceServices": services,
        }


def _key(of: GroupKind) -> str:
    return KEY_PREFIX + joined(*of)


def _first_error(check: Check) -> Finding | None:
    return next((one for one in lint(check.script, open_libs=check.open_libs) if one.severity == "error"), None)


def _is_read(check: Check) -> bool:
    try:
        parse(check.script)
    except LuaSyntaxError:
        return False
    return True


def _sentence(error: Finding) -> str:
    return f"line {error.line}: {error.message}; {error.advice}"


async def verify(cluster: ClusterReader, namespace: str, name: str, kinds: tuple[GroupKind, ...]) -> Verification:
    installation = await find_argocd(cluster, namespace, name)
    place = await read_place(cluster, installation)
    settings = await cluster.get(installation.settings) or {}
    found = await applications_to_show(cluster, installation.namespace)
    services = await _services(cluster, found)
    return Verification(place, settings.get("data") or {}, kinds, found, services)


async def _services(cluster: ClusterReader, found: Sequence[Manifest]) -> dict[str, list[Service]]:
    """List InferenceServices of the existing default environments and of other destinations that have one."""
    usual = [name for name in ENVIRONMENTS if await _exists(cluster, name)]
    destinations = ((each.get("spec") or {}).get("destination") or {} for each in found)
    others = [str(each.get("namespace") or "") for each in destinations]
    services = {}
    for namespace in dict.fromkeys([*usual, *filter(None, others)]):
        here = await _services_in(cluster, namespace)
        if here or namespace in usual:
            services[namespace] = here
    return services


async def _exists(cluster: ClusterReader, namespace: str) -> bool:
    """Return False if access is forbidden: then the namespace has no visible objects either."""
    try:
        return await cluster.get(ResourceKey(*NAMESPACE, "", namespace)) is not None
    except Forbidden:
        return False


async def _services_in(cluster: ClusterReader, namespace: str) -> list[Service]:
    try:
        listing = await cluster.list(INFERENCE_SERVICE, namespace=namespace)
    except ClusterError as error:
        if error.code in (403, 404):  # forbidden, or KServe is not installed
            return []
        raise
    return [_service(each) for each in listing.items]


def _service(live: Manifest) -> Service:
    status = live.get("status") or {}
    ready = [each.get("status") for each in status.get("conditions") or () if each.get("type") == "Ready"]
    return Service(live["metadata"]["name"], status.get("url") or "", ready[0] if ready else "")


def told(found: Verification) -> Iterator[Said]:
    """Yield the messages of the steps in order; stop after the first step that fails."""
    yield from banner("Verifying ArgoCD Health Check Configuration")
    yield from _configured(found)
    if found.unset:
        return
    yield from _propagated(found)
    if found.broken:
        yield from _broken(found)
    if found.unpropagated or found.broken:
        return
    yield "\nStep 3: Checking ArgoCD application health status...\n"
    yield table_of(found.applications) if found.applications else "  No applications found"
    yield "\nStep 4: Checking InferenceService status..."
    yield from _services_told(found)
    yield ""
    yield from banner("Verification Complete")


def _configured(found: Verification) -> Iterator[str]:
    operated = found.place.installation.is_operated
    where = "ArgoCD CR" if operated else "ConfigMap"
    yield f"\nStep 1: Checking if health check is in {where}..."
    again = f"  Run: {APPLY}{flags_to(found.place.installation, found.unset)}"
    if operated and found.place.entries is None:
        yield f"✗ {FIELD} NOT found in ArgoCD CR"
        yield again
        return
    if operated:
        yield f"✓ {FIELD} found in ArgoCD CR"
    for of in found.kinds:
        said = "NOT found" if of in found.unset else "found"
        yield f"{'✗' if of in found.unset else '✓'} {of.kind} health check {said} in {where}"
    for of in found.doubled:
        yield f"⚠ {key_text(*of)} is listed more than once; the last entry wins; {APPLY} --force keeps one"
    if found.unset:
        yield again


def _propagated(found: Verification) -> Iterator[str]:
    yield "\nStep 2: Checking if health check propagated to ConfigMap..."
    if not found.unpropagated:
        yield "✓ Health check successfully propagated to ConfigMap"
    else:
        yield "⚠ Health check not yet in ConfigMap"
        for of in found.unpropagated:
            there = "holds another script" if _key(of) in found.data else "not found"
            wins = "; spec.extraConfig overrides this key" if _key(of) in found.place.data else ""
            yield f"  {_key(of)}: {there}{wins}"
        overruled = [of for of in found.unpropagated if _key(of) in found.place.data]
        if overruled:
            yield f"  Remove it from spec.extraConfig of ArgoCD {found.place.installation.name}, then run this again"
        if overruled != found.unpropagated:
            yield "  Wait 10 seconds for the operator, then run this again"
    for key in found.strays:
        yield f"⚠ {key} is in {SETTINGS}, but not in the ArgoCD CR"
        yield "  The operator will remove it: this is expected behaviour, use the CR"


def _broken(found: Verification) -> Iterator[str]:
    for where, error in found.broken.items():
        yield f"✗ {where} in {SETTINGS} fails: {_sentence(error)}"
    yield "  Argo CD reports health Unknown for objects that use it"
    ours = [of for of in found.kinds if _key(of) in found.broken]
    if ours:
        yield f"  Correct it there, or replace it: {APPLY} --force{flags_to(found.place.installation, ours)}"


def _services_told(found: Verification) -> Iterator[Said]:
    for namespace, services in (found.services or {}).items():
        yield f"\nNamespace: {namespace}"
        if services:
            yield Table(("NAME", "URL", "READY"), [[each.name, each.url, each.ready] for each in services])
        else:
            yield "  No InferenceServices found"
    if not found.services:
        yield "  No InferenceServices found"
