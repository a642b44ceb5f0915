"""A repository that `argosy init` creates passes `argosy check` without findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_OK
from argosy.features.init.template_files import NewRepository
from argosy.main import main


@pytest.mark.parametrize("repository", [NewRepository("fraud", "https://github.com/acme/fraud.git"), NewRepository()])
def test_new_repository_has_no_findings(
    repository: NewRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in repository.build_files():
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
    monkeypatch.chdir(tmp_path)
    assert main(["check", ".", "-o", "json"]) == EXIT_OK
    report = json.loads(capsys.readouterr().out)
    assert [(item["rule"], item["file"]) for item in report["items"]] == []
    assert len(list(tmp_path.glob("argocd-apps/*.yaml"))) == 3
