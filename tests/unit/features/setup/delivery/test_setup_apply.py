"""Applying a setup plan: concurrent changes are not overwritten, and secrets are read from the declared places."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.features.setup.argosy_yaml_loader import RequiredFileMissing, load_applications, load_setup_request
from argosy.features.setup.delivery import desired_manifests, rbac_policy
from argosy.features.setup.delivery.apply import apply_plan, change_policy
from argosy.features.setup.delivery.cluster_setup_plan import (
    ChangeVerb,
    SetupChange,
    SetupPart,
    SetupPlan,
    SetupRequest,
    SetupState,
    build_setup_plan,
)
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.gitops.delivery_file.delivery_value_types import (
    DeliveryEnvironment,
    DeliveryFile,
    DeliveryRbac,
    DeliveryRepository,
)
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey

PLAIN = ArgoCDInstallation("argocd")
DELIVERY = DeliveryFile(
    DeliveryRepository("https://example.com/r.git"), (DeliveryEnvironment("dev", "a-dev", "a-dev", "dev"),)
)
NAMESPACE = ResourceKey("", "Namespace", "", "a-dev")
FILE = """\
apiVersion: argosy.dev/v1
kind: Delivery
repository:
  url: https://example.com/r.git
  credentials: {credentials}
environments:
  dev: {{application: a-dev, path: dev}}
"""


async def planned(cluster: Cluster) -> SetupPlan:
    """Build a plan that contains only the namespace."""
    live = await cluster.get(NAMESPACE)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm", "namespace": "argocd"}}
    live_objects = {PLAIN.settings_target: settings, **({NAMESPACE: live} if live else {})}
    plan = build_setup_plan(SetupRequest(DELIVERY), SetupState(PLAIN, live_objects))
    return SetupPlan(PLAIN, tuple(change for change in plan.changes if change.part is SetupPart.NAMESPACE))


async def applied(cluster: Cluster, plan: SetupPlan) -> list[ChangeVerb]:
    verbs: list[ChangeVerb] = []
    await apply_plan(cluster, plan, SetupRequest(DELIVERY), lambda change, verb: verbs.append(verb))
    return verbs


@pytest.mark.anyio
async def test_object_created_since_the_plan_is_not_overwritten(cluster: Cluster) -> None:
    plan = await planned(cluster)
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a-dev"}})
    with pytest.raises(UserError, match="Namespace/a-dev: was created by someone else since the plan"):
        await applied(cluster, plan)


@pytest.mark.anyio
async def test_object_changed_since_the_plan_is_not_overwritten(cluster: Cluster) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a-dev"}})
    plan = await planned(cluster)
    await cluster.patch(NAMESPACE, {"metadata": {"labels": {"opendatahub.io/dashboard": "false"}}})
    with pytest.raises(UserError, match="was changed by someone else since the plan"):
        await applied(cluster, plan)
    assert await applied(cluster, await planned(cluster)) == [ChangeVerb.UPDATE]
    assert await applied(cluster, await planned(cluster)) == [ChangeVerb.UNCHANGED]


@pytest.mark.anyio
async def test_plan_problem_stops_before_the_first_write(cluster: Cluster) -> None:
    plan = await planned(cluster)
    with pytest.raises(UserError, match="first this"):
        await applied(cluster, SetupPlan(PLAIN, plan.changes, problems=("first this",)))
    assert await cluster.get(NAMESPACE) is None


@pytest.mark.anyio
async def test_concurrent_policy_writes_of_several_deliveries_are_all_kept(cluster: Cluster) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}})
    owners = ("fraud", "churn", "llmops")

    async def write(owner: str) -> ChangeVerb:
        rbac = DeliveryRbac(admins=(owner,))
        return await change_policy(cluster, PLAIN, lambda texts: rbac_policy.merge_policy(texts, rbac, owner))

    assert ChangeVerb.CREATE in await asyncio.gather(*map(write, owners))
    live = await cluster.get(rbac_policy.rbac_config_map_key(PLAIN))
    assert live is not None
    lines = live["data"]["policy.csv"].splitlines()
    assert sorted(line for line in lines if not line.startswith("#")) == sorted(
        f"g, {owner}, role:admin" for owner in owners
    )


def test_secret_is_read_from_a_variable_or_a_file_next_to_the_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TOKEN", "of-a-test")
    (tmp_path / "key").write_text("-----BEGIN KEY-----\n")
    file = tmp_path / "argosy.yaml"
    file.write_text(FILE.format(credentials="{username: ada, passwordFrom: {env: GIT_TOKEN}}"))
    assert load_setup_request(file).values["password"] == "of-a-test"
    file.write_text(FILE.format(credentials="{sshKeyFrom: {file: key}}"))
    values = load_setup_request(file).values
    assert values == {"type": "git", "url": "https://example.com/r.git", "sshPrivateKey": "-----BEGIN KEY-----\n"}
    monkeypatch.delenv("GIT_TOKEN")
    file.write_text(FILE.format(credentials="{username: ada, passwordFrom: {env: GIT_TOKEN}}"))
    request = load_setup_request(file)
    assert "password" not in request.values
    assert request.unread == ("the repository's password cannot be read: environment variable GIT_TOKEN is empty or "
                              "missing",)  # fmt: skip


@pytest.mark.parametrize("field", ["username: ada, passwordFrom", "sshKeyFrom"])
def test_too_large_or_binary_secret_file_is_an_error_without_its_content(tmp_path: Path, field: str) -> None:
    file = tmp_path / "argosy.yaml"
    (tmp_path / "bytes").write_bytes(b"of-a-test\xff")
    (tmp_path / "folder").mkdir()
    for name, problem in (("/dev/zero", "larger than 1 MiB"), ("bytes", "not UTF-8"), ("folder", "cannot be read")):
        file.write_text(FILE.format(credentials=f"{{{field}: {{file: {name}}}}}"))
        with pytest.raises(UserError, match=f"{name}: .*{problem}.*; ") as caught:
            load_setup_request(file)
        assert "of-a-test" not in str(caught.value)


def test_non_utf8_secret_variable_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TOKEN", os.fsdecode(b"of-a-test\xff"))
    file = tmp_path / "argosy.yaml"
    file.write_text(FILE.format(credentials="{username: ada, passwordFrom: {env: GIT_TOKEN}}"))
    with pytest.raises(UserError, match="GIT_TOKEN: is not UTF-8") as caught:
        load_setup_request(file)
    assert "of-a-test" not in str(caught.value)


def test_too_large_or_unreadable_input_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="larger than 1 MiB"):
        load_setup_request(Path("/dev/zero"))
    with pytest.raises(UserError, match="cannot be read"):
        load_setup_request(tmp_path)
    (tmp_path / "dev-application.yaml").write_bytes(b"# x\n" * (1 << 19))
    with pytest.raises(UserError, match=r"dev-application\.yaml: is larger than 1 MiB"):
        load_applications(tmp_path)


@pytest.mark.anyio
async def test_unreadable_secret_stops_before_the_first_write(cluster: Cluster) -> None:
    key = desired_manifests.build_repository_key(DELIVERY, PLAIN)
    change = SetupChange(
        "", SetupPart.REPOSITORY, key, ChangeVerb.CREATE, desired_manifests.build_repository_secret(key, {"url": "x"})
    )
    plan = SetupPlan(PLAIN, (*(await planned(cluster)).changes, change))
    with pytest.raises(UserError, match="cannot be read"):
        await apply_plan(
            cluster, plan, SetupRequest(DELIVERY, unread=("it cannot be read",)), lambda change, verb: None
        )
    assert await cluster.get(NAMESPACE) is None


def test_missing_or_empty_application_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RequiredFileMissing, match=r"dev-application\.yaml"):
        load_applications(tmp_path)
    (tmp_path / "dev-application.yaml").write_text("# nothing\n")
    with pytest.raises(UserError, match="is empty"):
        load_applications(tmp_path)
