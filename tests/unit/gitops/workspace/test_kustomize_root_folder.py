"""Kustomize bases above the current folder: allowed outside of a Git repository, except single files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.features.check.service import check_paths
from argosy.gitops.workspace.kustomize_root_folder import find_root_with_bases, locate_with_bases
from argosy.gitops.workspace.render import RenderOutcome, render_parts
from argosy.gitops.workspace.render_target_resolver import WorkspaceRenderRequest
from argosy.main import main
from argosy.testing.user_repository_renders import Repo

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create base and apps/web/overlays/dev, which builds on it; the current folder is apps/web."""
    write(tmp_path / "base" / "kustomization.yaml", "resources: [settings.yaml]\n")
    write(tmp_path / "base" / "settings.yaml", CONFIG_MAP)
    write(tmp_path / "apps/web/overlays/dev/kustomization.yaml", "namePrefix: dev-\nresources: [../../../../base]\n")
    monkeypatch.chdir(tmp_path / "apps" / "web")
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def render(path: str = "overlays/dev") -> RenderOutcome:
    (part,) = render_parts(WorkspaceRenderRequest(paths=(path,)), lambda _: None)
    return part


def names(outcome: RenderOutcome) -> list[str]:
    assert outcome.error is None, outcome.error_text
    return [manifest["metadata"]["name"] for manifest in outcome.manifests]


def test_base_above_the_current_folder_is_rendered(top: Path) -> None:
    assert names(render()) == ["dev-settings"]
    assert names(render(str(top / "apps/web/overlays/dev"))) == ["dev-settings"]


def test_nested_bases_and_components_above_the_folder_are_rendered(top: Path) -> None:
    write(top / "shared/kustomization.yaml", "kind: Component\nnameSuffix: -v2\n")
    write(top / "base/kustomization.yaml", "resources: [settings.yaml]\ncomponents: [../shared]\n")
    write(top / "apps/middle/kustomization.yaml", "bases: [../../base]\n")
    write(top / "apps/web/overlays/dev/kustomization.yaml", "resources: [../../../middle]\n")
    assert names(render()) == ["settings-v2"]
    assert locate_with_bases("overlays/dev") == (str(top), "apps/web/overlays/dev")


@pytest.mark.parametrize(
    "content",
    [
        "resources: [../../../../base/settings.yaml]\n",
        "resources: [../../../../base]\npatches: [{path: ../../../../base/settings.yaml}]\n",
        "configMapGenerator: [{name: a, files: [../../../../base/settings.yaml]}]\n",
        "resources: [../../../../base, ../../settings.yaml]\n",
    ],
)
def test_file_above_the_kustomization_is_refused(top: Path, content: str) -> None:
    write(top / "apps/web/settings.yaml", CONFIG_MAP)
    write(top / "apps/web/overlays/dev/kustomization.yaml", content)
    part = render()
    assert part.error is not None
    assert "outside the kustomization's folder" in part.error_text or "leads out of the folder" in part.error_text


def test_symlink_in_a_base_to_a_file_outside_is_refused(top: Path) -> None:
    write(top / "secret.yaml", CONFIG_MAP)
    (top / "base" / "settings.yaml").unlink()
    (top / "base" / "settings.yaml").symlink_to("../secret.yaml")
    part = render()
    assert part.error is not None and "outside the kustomization's folder" in part.error_text


def test_missing_base_is_reported_as_missing(top: Path) -> None:
    write(top / "apps/web/overlays/dev/kustomization.yaml", "resources: [../../../../nothing]\n")
    assert "../../../../nothing does not exist" in render().error_text


def test_cycle_of_bases_is_an_error(top: Path) -> None:
    write(top / "base/kustomization.yaml", "resources: [settings.yaml, ../apps/web/overlays/dev]\n")
    assert "is a cycle" in render().error_text


def test_in_a_repository_bases_outside_of_it_are_refused(top: Path) -> None:
    """argo: an Application's files are those of its repository."""
    (top / "apps" / ".git").mkdir()
    part = render()
    assert part.error is not None and "leads out of the repository" in part.error_text


def test_root_is_the_current_folder_if_no_base_is_above_it(top: Path) -> None:
    write(top / "apps/web/overlays/dev/kustomization.yaml", "resources: [../../base]\n")
    write(top / "apps/web/base/kustomization.yaml", "resources: [settings.yaml, 'https://example.com/x//y?ref=v1']\n")
    write(top / "apps/web/broken/kustomization.yaml", "resources: [")
    here = os.path.realpath(os.curdir)
    for folder in ("overlays/dev", "broken", "nothing"):
        assert find_root_with_bases(here, os.path.join(here, folder)) == here


def test_check_command_renders_bases_above_the_folder(top: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", "overlays/dev"])
    assert (code, "AGY102" in capsys.readouterr().out) == (0, False)


def test_check_paths_reads_no_base_above_the_checked_folder(top: Path) -> None:
    """Promotion gates and the pytest plug-in check folders that no user typed."""
    write(top / "made/dev/kustomization.yaml", "resources: [../../base]\n")
    report = check_paths([str(top / "made")], log=lambda _: None)
    assert [finding.rule.id for finding in report.findings] == ["AGY102"]
    assert report.objects == 0


def test_pytest_plugin_renders_no_folder_above_its_repository(top: Path) -> None:
    write(top / "made/dev/kustomization.yaml", "resources: [../../base]\n")
    repository = Repo(top / "made")
    try:
        with pytest.raises(UserError, match="leads out of"):
            repository.render("dev")
    finally:
        repository.close()


@pytest.mark.parametrize("field", ["resources", "components", "generators"])
def test_path_with_a_null_character_is_an_error(top: Path, field: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(top / "apps/web/overlays/dev/kustomization.yaml", f'{field}: ["a\\0b"]\n')
    assert render().error is not None
    assert main(["check", "overlays/dev"]) == 0
    assert "overlays/dev: not rendered" in capsys.readouterr().err
