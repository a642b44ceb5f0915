"""Health checks are merged into the current live object of the right Argo CD, and verified there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import Forbidden, UserError
from argosy.features.health_checks.argocd_install.health_settings_object import (
    HealthSettings,
    load_health_settings,
    write_checks,
)
from argosy.features.health_checks.argocd_install.installed_health_check_verification import (
    HealthVerification,
    render_verification,
)
from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation, ArgoCDNotFound, find_argocd
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import ARGOCD, INFERENCE_SERVICE

PVC = {"group": "", "kind": "PersistentVolumeClaim", "check": "return {}\n"}
WANTED = build_requested_checks(DEFAULT_KINDS)
KEYS = {check.key: check.script for check in WANTED}
HERE = ArgoCDInstallation("default", "mine")
pytestmark = pytest.mark.anyio


@pytest.fixture
async def operated(cluster: Cluster) -> AsyncIterator[Cluster]:
    """A cluster with the ArgoCD CRD, but without an operator."""
    await cluster.apply(load_definition("argocds.argoproj.io"), manager="test")
    yield cluster


def argocd(name: str = "mine", namespace: str = "default", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata, "spec": spec}


def settings(**metadata: Any) -> Manifest:
    metadata = {"name": "argocd-cm", "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"url": "https://x"}}


async def entries(cluster: Cluster) -> Any:
    live = await cluster.get(HERE.settings_target)
    assert live is not None
    return live["spec"].get("resourceHealthChecks")


# -- writing


async def test_write_keeps_an_entry_added_concurrently(operated: Cluster) -> None:
    await operated.create(argocd())
    stale = await load_health_settings(operated, HERE)
    await operated.patch(HERE.settings_target, {"spec": {"resourceHealthChecks": [PVC]}})
    assert await write_checks(operated, stale, WANTED)
    assert await entries(operated) == [PVC, *(check.entry for check in WANTED)]


async def test_write_without_changes_sends_no_request(operated: Cluster) -> None:
    await operated.create(argocd())
    assert await write_checks(operated, await load_health_settings(operated, HERE), WANTED)
    before = await operated.get(HERE.settings_target)
    assert not await write_checks(operated, await load_health_settings(operated, HERE), WANTED)
    assert await operated.get(HERE.settings_target) == before


class Busy:
    """The embedded cluster, where a concurrent write precedes every patch."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._turns = cluster, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def patch(self, key: ResourceKey, patch: Any, **options: Any) -> Manifest:
        self._turns += 1
        await self._cluster.patch(key, {"metadata": {"annotations": {"turn": str(self._turns)}}})
        return await self._cluster.patch(key, patch, **options)


async def test_write_gives_up_after_5_conflicts(operated: Cluster) -> None:
    await operated.create(argocd())
    with pytest.raises(UserError, match="ArgoCD/default/mine: gave up after 5 write conflicts"):
        await write_checks(Busy(operated), await load_health_settings(operated, HERE), WANTED)
    assert await entries(operated) is None


async def test_write_keeps_foreign_keys_of_plain_argocd_cm(cluster: Cluster) -> None:
    await cluster.create(settings())
    plain = await find_argocd(cluster, "default")
    assert not plain.has_operator
    assert await write_checks(cluster, await load_health_settings(cluster, plain), WANTED)
    live = await cluster.get(plain.config_map_key)
    assert live is not None and live["data"] == {"url": "https://x", **KEYS}


# -- finding


async def test_single_argocd_resource_is_found(operated: Cluster) -> None:
    await operated.create(argocd())
    assert await find_argocd(operated) == HERE
    assert await find_argocd(operated, "default") == HERE


async def test_several_argocd_resources_require_a_choice(operated: Cluster) -> None:
    await operated.create(argocd())
    await operated.create(argocd("other"))
    with pytest.raises(UserError, match=r"2 ArgoCD resources \(default/mine, default/other\); choose one with"):
        await find_argocd(operated)
    assert await find_argocd(operated, "default", "other") == ArgoCDInstallation("default", "other")


async def test_openshift_gitops_resource_is_preferred(operated: Cluster) -> None:
    await operated.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-gitops"}})
    await operated.create(argocd())
    await operated.create(argocd("openshift-gitops", "openshift-gitops"))
    assert await find_argocd(operated) == ArgoCDInstallation("openshift-gitops", "openshift-gitops")


@pytest.mark.parametrize("namespace", ["", "default"])
async def test_argocd_cm_owned_by_a_cr_is_not_selected(cluster: Cluster, namespace: str) -> None:
    owner = {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": "mine", "uid": "1"}
    await cluster.create(settings(ownerReferences=[owner]))
    with pytest.raises(ArgoCDNotFound, match="ArgoCD CR 'openshift-gitops' not found in namespace"):
        await find_argocd(cluster, namespace)


async def test_missing_named_resource_does_not_fall_back_to_argocd_cm(cluster: Cluster) -> None:
    await cluster.create(settings())
    with pytest.raises(ArgoCDNotFound, match="ArgoCD CR 'mine' not found in namespace 'default'"):
        await find_argocd(cluster, "default", "mine")


class Narrow:
    """The embedded cluster for a user who cannot list ArgoCD resources cluster-wide."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def list(self, kind: GroupKind, *, namespace: str = "", **options: Any) -> Any:
        if kind == ARGOCD and not namespace:
            raise Forbidden("not everywhere")
        return await self._cluster.list(kind, namespace=namespace, **options)


async def test_missing_cluster_wide_permission_requires_a_namespace(operated: Cluster) -> None:
    await operated.create(argocd())
    assert await find_argocd(Narrow(operated), "default") == HERE
    with pytest.raises(ArgoCDNotFound, match="choose yours with --namespace"):
        await find_argocd(Narrow(operated))


# -- verifying


def verification(data: dict[str, str], *checks: Any, **spec: Any) -> HealthVerification:
    live = argocd(resourceHealthChecks=list(checks), **spec)
    return HealthVerification(HealthSettings(HERE, live), data, (INFERENCE_SERVICE,))


async def test_verify_explains_a_key_that_only_argocd_cm_has() -> None:
    key = "resource.customizations.health.PersistentVolumeClaim"
    result = verification({**KEYS, key: "return {}"}, *(check.entry for check in WANTED))
    assert result.is_ok and result.stray_keys == [key]
    lines = "\n".join(str(line) for line in render_verification(result))
    assert f"⚠ {key} is in argocd-cm, but not in the ArgoCD CR" in lines
    assert "this is expected behaviour, use the CR" in lines


async def test_key_from_extra_config_is_not_a_stray_key() -> None:
    key = "resource.customizations.health.PersistentVolumeClaim"
    result = verification({**KEYS, key: "x"}, *(check.entry for check in WANTED), extraConfig={key: "x"})
    assert result.stray_keys == []


async def test_verify_reports_an_incomplete_script_as_not_propagated() -> None:
    model = WANTED[0]
    result = verification({model.key: model.script.partition("\n")[2]}, model.entry)
    assert not result.is_ok
    assert [of.kind for of in result.unpropagated_kinds] == ["InferenceService"]
    lines = [str(line) for line in render_verification(result)]
    assert "⚠ Health check not yet in ConfigMap" in lines and f"  {model.key}: holds another script" in lines


async def test_verify_reports_extra_config_that_overrides_a_check() -> None:
    model = WANTED[0]
    result = verification({model.key: "x"}, model.entry, extraConfig={model.key: "x"})
    lines = [str(output_line) for output_line in render_verification(result)]
    assert f"  {model.key}: holds another script; spec.extraConfig overrides this key" in lines
    assert "  Remove it from spec.extraConfig of ArgoCD mine, then run this again" in lines
    assert not any("Wait 10 seconds" in line for line in lines), "no operator will change that"


async def test_verify_reports_a_kind_listed_twice() -> None:
    model = WANTED[0]
    result = verification(KEYS, model.entry, model.entry)
    assert any("is listed more than once; the last entry wins" in str(line) for line in render_verification(result))


async def test_verify_fails_on_a_syntax_error_with_its_line() -> None:
    model = WANTED[0]
    script = "local health = {}\nif obj.status ~= nil the\nreturn health"
    result = verification({model.key: script}, {**model.entry, "check": script})
    lines = [str(output_line) for output_line in render_verification(result)]
    assert not result.is_ok and result.unpropagated_kinds == []
    assert any(line.startswith(f"✗ {model.key} in argocd-cm fails: line 2: does not parse") for line in lines)
    assert "Verification Complete" not in lines
    assert "line 2" in result.to_wire()["checks"][0]["error"]


async def test_verify_fails_on_a_syntax_error_of_another_kind() -> None:
    key = "resource.customizations.health.PersistentVolumeClaim"
    result = verification({**KEYS, key: "if"}, *(check.entry for check in WANTED), extraConfig={key: "if"})
    assert not result.is_ok and list(result.script_errors) == [key]
