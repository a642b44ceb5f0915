"""Argo CD variant and example of a demo, also for a folder that already has them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance
from argosy.errors import UserError
from argosy.features.demo.examples import LLMOPS, STAGES, choose_example
from argosy.features.demo.in_process_demo_stack import DemoOptions, gitops_product_name, run_demo
from argosy.features.demo.stages_example_repository import (
    FEATURE_BRANCH,
    LEGACY_BRANCH,
    add_later_commits,
    create_stages_repository,
    has_later_commits,
)

RAN = RunningInstance(pid=0, api="https://127.0.0.1:1", kubeconfig="k", data_dir="d", ephemeral=False)


@pytest.mark.parametrize(("had", "argocd"), [("argocd_operator", "plain"), ("argocd_operator=plain", "")])
def test_existing_folder_rejects_another_argocd_variant(tmp_path: Path, had: str, argocd: str) -> None:
    addons = f"{had},simulators"
    DataFolder(tmp_path).write_run(replace(RAN, addons=addons))
    with pytest.raises(UserError, match=f"this folder has {gitops_product_name(addons)}; omit --argocd"):
        run_demo(DemoOptions(data_dir=tmp_path, argocd=argocd), ready=lambda _: None, report=lambda _: None)


def test_existing_folder_keeps_its_example_and_rejects_another(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert choose_example(folder, None) is LLMOPS and choose_example(folder, "stages") is STAGES
    create_stages_repository(tmp_path / "repositories" / STAGES.repository)
    assert choose_example(folder, None) is STAGES
    with pytest.raises(UserError, match="this folder has the example stages; omit --example"):
        choose_example(folder, "llmops")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"argocd": "plain"}, "omit --argocd"), ({"has_engine": False}, "omit --no-engine")],
)
def test_stages_example_requires_operator_and_engine(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run_demo(
            DemoOptions(data_dir=tmp_path, example="stages", **options), ready=lambda _: None, report=lambda _: None
        )
    assert list(tmp_path.iterdir()) == []


def test_later_commits_change_the_branches_of_the_stages_example(tmp_path: Path) -> None:
    repository = create_stages_repository(tmp_path / "stages.git")
    path = "gitops/stage01/model-serving/pvc-mistral-24b.yaml"
    labels = "gitops/stage02/model-alignment/kustomization.yaml"
    assert repository.read_file(path, LEGACY_BRANCH) and b"includeSelectors" not in repository.read_file(
        labels, FEATURE_BRANCH
    )
    assert not has_later_commits(repository)
    add_later_commits(repository)
    assert has_later_commits(repository) and b"includeSelectors: true" in repository.read_file(labels, FEATURE_BRANCH)
    with pytest.raises(UserError):
        repository.read_file(path, LEGACY_BRANCH)
