"""`argosy admin export` and `import`: move an installation to another cluster through a file."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.cli import prompts
from argosy.features.backup import export_import_cli
from argosy.kube.objects import dump_yaml, read_yaml_documents
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.app_commands import Scene, scene, write_kubeconfig
from support.clusters import served
from support.engine import CONTROL, config_map
from support.simulated_argocd import controller
from support.tiers import IN_TEST_ALL

AUTOMATED = {"automated": {"prune": True}}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "repo", "namespace": CONTROL, "labels": {"argocd.argoproj.io/secret-type": "repository"}},
    "stringData": {"url": "https://git.example.com/a", "password": "open-sesame"},
}


async def furnished(current_scene: Scene) -> Scene:
    """Create an installation with settings, a project, a Secret, and an Application with a history."""
    await current_scene.cluster.create(load_definition("applicationsets.argoproj.io"))
    await current_scene.configure({"timeout.reconciliation": "90s"})
    await current_scene.project("team", description="ours")
    await current_scene.cluster.create(SECRET)
    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "nobodys", "namespace": CONTROL}}
    await current_scene.cluster.create({**other, "stringData": {"a": "not-of-it"}})
    current_scene.repository.push({"app/settings.yaml": config_map(a="1")})
    await current_scene.deliver(project="team", syncPolicy=AUTOMATED, metadata={"labels": {"env": "dev"}})
    await current_scene.until_synced()
    return current_scene


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Scene]:
    (tmp_path / "one").mkdir()
    async with scene(tmp_path / "one") as opened_scene:
        yield await furnished(opened_scene)


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Scene]:
    """Another cluster with its own engine, and no Applications yet."""
    (tmp_path / "other").mkdir()
    async with scene(tmp_path / "other") as opened_scene:
        await opened_scene.cluster.create(load_definition("applicationsets.argoproj.io"))
        yield opened_scene


def documents(text: str) -> list[dict[str, Any]]:
    return [dict(document) for document in read_yaml_documents(text.encode()) if document]


async def test_export_imported_into_another_cluster_exports_the_same_again(
    one: Scene, other: Scene, tmp_path: Path
) -> None:
    file = tmp_path / "all.yaml"
    result = await one.argosy("admin", "export", "--secrets", "-o", str(file))
    assert result.code == 0, result.err
    assert "passwords, tokens, keys" in result.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    done = await other.argosy("admin", "import", str(file), "--secrets", "--hold", "-y")
    assert done.code == 0, done.err + done.out
    await other.settled()
    moved, was = await other.app(), await one.app()
    assert moved["spec"] == was["spec"]
    assert moved["status"]["history"] == was["status"]["history"]
    assert json.loads(moved["metadata"]["annotations"]["argosy.dev/hold"])["reason"] == "imported"
    again = await other.argosy("admin", "export", "--secrets")
    before, after = documents(file.read_text()), documents(again.out)
    assert [_steady(document) for document in after] == [_steady(document) for document in before]


@pytest.mark.tier("all")
async def test_imported_application_on_hold_is_synced_after_release(one: Scene, other: Scene, tmp_path: Path) -> None:
    """Although the revision is unchanged and self-heal is off."""
    file = tmp_path / "all.yaml"
    assert (await one.argosy("admin", "export", "-o", str(file))).code == 0
    assert (await other.argosy("admin", "import", str(file), "--hold", "-y")).code == 0
    await other.settled()
    held = await other.app()
    assert held["status"]["sync"]["status"] == "OutOfSync"
    assert await other.get("ConfigMap", "settings") is None
    explanation = await other.argosy("explain", "application/models")
    assert "imported" in explanation.out and "argosy app release models" in explanation.out
    assert (await other.argosy("app", "release", "models")).code == 0
    await other.until_synced(one.repository.head)
    assert await other.get("ConfigMap", "settings") is not None
    before, after = held["status"]["history"], (await other.app())["status"]["history"]
    assert [entry["id"] for entry in after] == [*(entry["id"] for entry in before), before[-1]["id"] + 1]


def _steady(document: dict[str, Any]) -> dict[str, Any]:
    """Remove what the engine writes, the hold annotation, and the allowed local root of the test."""
    if document["kind"] == "Application":
        document["status"] = {"history": document["status"]["history"]}
        document["metadata"].pop("annotations", None)
    if document["metadata"]["name"] == "argosy-cm":
        document.pop("data", None)
    return document


@pytest.mark.tier("all")
async def test_second_import_changes_nothing(one: Scene, other: Scene, tmp_path: Path) -> None:
    """Neither an Application held by the first import, nor one released since."""
    file = tmp_path / "all.yaml"
    file.write_text((await one.argosy("admin", "export", "--secrets")).out)
    import_all = ("admin", "import", str(file), "--secrets", "--hold", "-y")
    first = await other.argosy(*import_all)
    assert first.code == 0, first.out + first.err
    held = (await other.app())["metadata"]["annotations"]["argosy.dev/hold"]
    again = await other.argosy(*import_all, "--verbose")
    assert "Plan: 0 to create, 0 to change, 0 to prune" in again.out
    assert "= Application models in argocd  unchanged: argosy.dev/hold is kept" in again.out
    assert (await other.app())["metadata"]["annotations"]["argosy.dev/hold"] == held
    assert (await other.argosy("app", "release", "models")).code == 0
    assert "Plan: 0 to create, 0 to change, 0 to prune" in (await other.argosy(*import_all)).out
    assert "argosy.dev/hold" not in ((await other.app())["metadata"].get("annotations") or {})


async def test_secrets_are_exported_and_imported_only_with_flag(one: Scene, other: Scene, tmp_path: Path) -> None:
    plain = await one.argosy("admin", "export")
    assert plain.code == 0
    assert "Secret" not in {document["kind"] for document in documents(plain.out)}
    assert "open-sesame" not in plain.out + plain.err
    whole = await one.argosy("admin", "export", "--secrets")
    assert [document["metadata"]["name"] for document in documents(whole.out) if document["kind"] == "Secret"] == [
        "repo"
    ]
    file = tmp_path / "all.yaml"
    file.write_text(whole.out)
    done = await other.argosy("admin", "import", str(file), "-y")
    assert "= Secret repo in argocd  skip: use --secrets to import it" in done.out
    assert await other.get("Secret", "repo", CONTROL) is None


@pytest.mark.tier("all")
async def test_omitted_settings_are_listed_with_the_flag_that_includes_them(one: Scene) -> None:
    for name, data in (("argocd-gpg-keys-cm", {"4AEE18F83AFDEB23": "a key"}), ("argocd-notifications-cm", {})):
        metadata = {"name": name, "namespace": CONTROL}
        await one.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    plain = await one.argosy("admin", "export")
    assert "argocd-gpg-keys-cm" not in plain.out
    assert "not exported: argocd-gpg-keys-cm; --all-settings includes them" in plain.err
    whole = await one.argosy("admin", "export", "--all-settings")
    names = {document["metadata"]["name"] for document in documents(whole.out)}
    assert {"argocd-gpg-keys-cm", "argocd-notifications-cm"} < names
    assert "not exported" not in whole.err


@pytest.mark.tier("all")
async def test_import_dry_run_prints_the_plan_and_writes_nothing(one: Scene, other: Scene, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text((await one.argosy("admin", "export")).out)
    result = await other.argosy("admin", "import", str(file), "--dry-run", "--output", "json")
    assert result.code == 0
    plan = json.loads(result.out)
    assert plan["done"] is False
    verbs = {(item["kind"], item["name"]): item["verb"] for item in plan["items"]}
    assert verbs["Application", "models"] == "create"
    assert verbs["ConfigMap", "argocd-cm"] == "update"
    assert await other.get("argoproj.io/Application", "models", CONTROL) is None
    refused = await other.argosy("admin", "import", str(file))
    assert refused.code == 2 and "pass -y" in refused.err
    assert "~ ConfigMap argocd-cm in argocd\n    data.timeout.reconciliation: 90s is added\n" in refused.out


@pytest.mark.tier("all")
async def test_import_prune_deletes_absent_applications_but_not_their_resources(one: Scene, tmp_path: Path) -> None:
    remaining_documents = [
        document
        for document in documents((await one.argosy("admin", "export")).out)
        if document["kind"] != "Application"
    ]
    file = tmp_path / "less.yaml"
    file.write_text("---\n".join(dump_yaml(document) for document in remaining_documents))
    finalizers = ["resources-finalizer.argocd.argoproj.io"]
    await one.patch_app({"metadata": {"finalizers": finalizers}})
    result = await one.argosy("admin", "import", str(file), "-y")
    assert "! Application models in argocd  needs pruning" in result.out
    assert await one.get("argoproj.io/Application", "models", CONTROL) is not None
    done = await one.argosy("admin", "import", str(file), "--prune", "-y")
    assert done.code == 0, done.err
    await one.until_gone("argoproj.io/Application", "models", CONTROL)
    assert await one.get("ConfigMap", "settings") is not None
    assert await one.get("Secret", "repo", CONTROL) is not None
    assert await one.get("ConfigMap", "argosy-cm", CONTROL) is not None


@pytest.mark.tier("all")
async def test_applications_managed_by_another_argo_cd_are_not_pruned(one: Scene, tmp_path: Path) -> None:
    await one.cluster.create(controller())
    file = tmp_path / "less.yaml"
    file.write_text(dump_yaml({**config_map("argosy-cm"), "metadata": {"name": "argocd-cm"}}))
    import_here = ("admin", "import", str(file), "-n", "argosy", "--prune", "--dry-run")
    result = await one.argosy(*import_here)
    assert "= Application models in argocd  skip: managed by an Argo CD" in result.out
    assert "0 to prune" in result.out
    import_named = (*import_here, "--application-namespaces", "argocd")
    assert "- Application models in argocd" in (await one.argosy(*import_named)).out
    filtered_result = await one.argosy(*import_named, "--skip-resources-with-label", "env=dev")
    assert "0 to prune" in filtered_result.out


@pytest.mark.tier("all")
async def test_json_output_shows_the_plan_before_the_prompt(
    other: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_import_cli, "is_interactive", lambda: True)
    monkeypatch.setattr(prompts, "read_line", lambda: "n\n")
    file = tmp_path / "cm.yaml"
    file.write_text(dump_yaml({**config_map("argocd-cm", a="b"), "metadata": {"name": "argocd-cm"}}))
    result = await other.argosy("admin", "import", str(file), "--output", "json")
    assert result.code == 2 and result.out == ""
    plan, _, answered = result.err.partition("write 1 objects? [y/N] ")
    assert "~ ConfigMap argocd-cm in argocd\n    data.a: b is added\n" in plan
    assert "nothing was written" in answered


@pytest.mark.parametrize("is_there", [True, pytest.param(False, marks=IN_TEST_ALL)])
async def test_object_rejected_by_the_cluster_prevents_all_writes(other: Scene, tmp_path: Path, is_there: bool) -> None:
    if is_there:
        await other.project("team")
    file, settings = tmp_path / "refused.yaml", {"name": "argocd-cm"}
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "team"}}
    wrong = {**project, "spec": {"sourceRepos": "all"}}
    file.write_text(f"{dump_yaml({**config_map(a='b'), 'metadata': settings})}---\n{dump_yaml(wrong)}")
    result = await other.argosy("admin", "import", str(file), "-y")
    assert result.code != 0 and "sourceRepos" in result.err and " updated" not in result.out
    assert "a" not in ((await other.get("ConfigMap", "argocd-cm", CONTROL) or {}).get("data") or {})


@pytest.mark.tier("all")
async def test_running_operation_is_neither_imported_nor_overwritten(one: Scene, other: Scene, tmp_path: Path) -> None:
    await other.project("team")
    file = tmp_path / "busy.yaml"
    (app,) = [
        document
        for document in documents((await one.argosy("admin", "export")).out)
        if document["kind"] == "Application"
    ]
    app["operation"] = {"sync": {}}
    app["status"]["operationState"] = {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": {}}
    file.write_text(dump_yaml(app))
    done = await other.argosy("admin", "import", str(file), "--hold", "-y")
    assert done.code == 0, done.err + done.out
    moved = await other.app()
    assert "operation" not in moved
    assert moved["status"].get("operationState", {}).get("phase") != "Running"
    hold = {"argocd.argoproj.io/skip-reconcile": "true"}  # no engine starts it
    metadata = {"annotations": hold, "labels": {"env": "prod"}}
    await other.patch_app({"metadata": metadata, "operation": {"sync": {}}})
    refused = await other.argosy("admin", "import", str(file), "-y")
    assert refused.code == 5
    assert "an operation is in progress" in refused.out
    assert "operation" in await other.app()
    stopped = await other.argosy("admin", "import", str(file), "-y", "--stop-operation")
    assert stopped.code == 0, stopped.err
    assert "operation" not in await other.app()


@pytest.mark.tier("all")
async def test_application_with_a_running_operation_is_not_pruned(one: Scene, tmp_path: Path) -> None:
    await one.patch_app({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}})
    await one.patch_app({"operation": {"sync": {}}})
    file = tmp_path / "less.yaml"
    file.write_text(dump_yaml({**config_map("argosy-cm"), "metadata": {"name": "argocd-cm"}}))
    refused = await one.argosy("admin", "import", str(file), "--prune", "-y")
    assert refused.code == 5
    assert "✗ Application models in argocd: an operation is in progress" in refused.out
    assert await one.get("argoproj.io/Application", "models", CONTROL) is not None


async def test_config_map_managed_by_an_operator_is_skipped(other: Scene, tmp_path: Path) -> None:
    reference = {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": "gitops", "uid": "1"}
    key = ResourceKey("", "ConfigMap", CONTROL, "argocd-cm")
    await other.cluster.patch(key, {"metadata": {"ownerReferences": [reference]}})
    file = tmp_path / "cm.yaml"
    cm = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}, "data": {"a": "b"}}
    file.write_text(dump_yaml(cm))
    result = await other.argosy("admin", "import", str(file), "-y")
    assert result.code == 0
    assert "managed by an operator: change the ArgoCD resource" in result.out


async def test_export_of_the_argocd_cli_can_be_imported(other: Scene, tmp_path: Path) -> None:
    """In the format of `argocd admin export`: missing namespaces, and a separator at the end."""
    file = tmp_path / "argocd.yaml"
    file.write_text(
        "apiVersion: v1\ndata:\n  timeout.reconciliation: 100s\nkind: ConfigMap\nmetadata:\n  labels:\n"
        "    app.kubernetes.io/part-of: argocd\n  name: argocd-cm\n---\n"
        "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata:\n  name: default\nspec:\n  sourceRepos: ['*']\n"
        "status: {}\n---\n"
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: shop\n  namespace: team-a\n"
        "  finalizers:\n  - resources-finalizer.argocd.argoproj.io\nspec:\n  destination:\n    namespace: shop\n"
        "    server: https://kubernetes.default.svc\n  project: default\n  source:\n    path: app\n"
        "    repoURL: https://git.example.com/shop\nstatus:\n  history:\n  - deployedAt: '2026-01-01T00:00:00Z'\n"
        "    id: 3\n    revision: abc\n    source:\n      repoURL: https://git.example.com/shop\n---\n"
    )
    result = await other.argosy("admin", "import", str(file), "-y")
    assert result.code == 0, result.err
    assert "Namespace team-a created" in result.out
    application = await other.get("argoproj.io/Application", "shop", "team-a")
    assert application is not None and application["status"]["history"][0]["id"] == 3


@pytest.mark.tier("all")
async def test_import_creates_the_crd_and_namespace_in_an_empty_cluster(one: Scene, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    file.write_text((await one.argosy("admin", "export")).out)
    async with served(tmp_path / "fresh") as fresh:
        write_kubeconfig(tmp_path / "kubeconfig", fresh)
        there = Scene(EmbeddedCluster(fresh.plane), one.repository, one.engine, kubeconfig=tmp_path / "kubeconfig")
        result = await there.argosy("admin", "import", str(file), "-y")
        assert result.code == 0, result.err
        assert "+ CustomResourceDefinition applications.argoproj.io" in result.out
        assert "+ Namespace argocd" in result.out
        assert (await there.app())["spec"] == (await one.app())["spec"]
        again = await there.argosy("admin", "import", str(file), "--dry-run")
        assert "Plan: 0 to create, 0 to change" in again.out


@pytest.mark.parametrize(
    "text",
    ["a: [\n", *(pytest.param(text, marks=IN_TEST_ALL) for text in ("", "---\n", "- 1\n", "kind: Application\n"))],
)
async def test_file_that_is_not_an_export_is_rejected(other: Scene, tmp_path: Path, text: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    result = await other.argosy("admin", "import", str(file), "-y")
    assert result.code == 2
    assert "bad.yaml" in result.err


@pytest.mark.tier("all")
async def test_truncated_file_prunes_nothing(one: Scene, tmp_path: Path) -> None:
    whole, file = (await one.argosy("admin", "export")).out, tmp_path / "cut.yaml"
    file.write_text(whole[: whole.index("repoURL")])
    result = await one.argosy("admin", "import", str(file), "--prune", "-y")
    assert result.code == 2 and "the file is truncated" in result.err
    assert (await one.app())["spec"]["syncPolicy"] == AUTOMATED
