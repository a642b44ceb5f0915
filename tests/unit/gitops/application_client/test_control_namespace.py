"""Tests how the control namespace is found, with full, limited and failing access."""

from __future__ import annotations

from typing import Any, cast

import pytest

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application_client.control_namespace import LEADER_LEASE_NAME, find_control_namespace
from argosy.kube.client import Cluster, User
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.faulty_client import Faulty

pytestmark = pytest.mark.anyio
GROUP = "rbac.authorization.k8s.io"


async def namespace(cluster: Cluster, name: str, *, is_control: bool = False) -> None:
    labels = {"argosy.dev/control": "true"} if is_control else {}
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


async def ada_may(admin: Cluster, place: str, rules: list[dict[str, Any]]) -> None:
    kind = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": "ada", "namespace": place}}
    await admin.create({**kind, "kind": "Role", "rules": rules})
    reference = {"apiGroup": GROUP, "kind": "Role", "name": "ada"}
    subject = {"kind": "User", "name": "ada", "apiGroup": GROUP}
    await admin.create({**kind, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})


async def test_argosy_namespace_takes_precedence_over_argocd_resource(cluster: Cluster) -> None:
    assert await find_control_namespace(cluster) == "argocd"
    await cluster.create(load_definition("argocds.argoproj.io"))
    await namespace(cluster, "openshift-gitops")
    metadata = {"name": "openshift-gitops", "namespace": "openshift-gitops"}
    await cluster.create({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": metadata})
    assert await find_control_namespace(cluster) == "openshift-gitops"
    await namespace(cluster, "argosy", is_control=True)
    assert await find_control_namespace(cluster) == "argosy"


async def test_namespace_with_leader_lease_wins_among_several(cluster: Cluster) -> None:
    await namespace(cluster, "argosy", is_control=True)  # left over after an uninstall, with its Applications
    await namespace(cluster, "gitops", is_control=True)
    assert await find_control_namespace(cluster) == "argosy"
    metadata = {"name": LEADER_LEASE_NAME, "namespace": "gitops"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    await cluster.create({**lease, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}})
    assert await find_control_namespace(cluster) == "gitops"


@pytest.mark.parametrize(("place", "near"), [("gitops", ["team", "gitops"]), ("argosy", ["default"])])
async def test_user_limited_to_one_namespace_finds_it_by_label(place: str, near: list[str]) -> None:
    async with ControlPlane.open(rbac=True) as plane:
        admin = EmbeddedCluster(plane)
        ada = admin.acting_as(User("ada"))
        await namespace(admin, place, is_control=True)
        assert await find_control_namespace(ada, near) == "argocd"
        await ada_may(admin, place, [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}])
        assert await find_control_namespace(ada, near) == place


@pytest.mark.parametrize("error", [
    ClusterError("etcd is ill", code=500), ClusterError("Unauthorized", code=401), TransientError("away")
])  # fmt: skip
async def test_api_error_is_raised_instead_of_assuming_absence(cluster: Cluster, error: Exception) -> None:
    with pytest.raises(type(error)) as error_info:
        await find_control_namespace(cast(Cluster, Faulty(cluster, lambda verb: error)))
    if isinstance(error, ClusterError):
        assert str(error_info.value) == f"cannot find the control namespace: {error.message} ({error.code})"
