"""Input files of `argosy health test FOLDER`."""

from __future__ import annotations

from pathlib import Path

import pytest

from argosy.errors import UserError
from argosy.features.health_checks.input_files import load_inputs

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml"])
def test_kustomization_in_a_folder_is_skipped(tmp_path: Path, name: str) -> None:
    (tmp_path / "service.yaml").write_text(SERVICE)
    (tmp_path / name).write_text("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n")
    inputs = load_inputs([tmp_path])
    assert [entry.manifest["kind"] for entry in inputs.objects] == ["Service"] and inputs.problems == ()


def test_kustomization_given_by_path_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: []\n")
    with pytest.raises(UserError):
        load_inputs([tmp_path / "kustomization.yaml"])
