"""Which Argo CD a demo plays, where its folder has one already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from argosy.app.demo import DemoOptions, played, run
from argosy.app.folder import DataFolder, Run
from argosy.model.errors import UserError

RAN = Run(pid=0, api="https://127.0.0.1:1", kubeconfig="k", data_dir="d", ephemeral=False)


@pytest.mark.parametrize(("had", "asked"), [("argocd_operator", "plain"), ("argocd_operator=plain", "")])
def test_a_folder_does_not_get_a_second_argo_cd(tmp_path: Path, had: str, asked: str) -> None:
    addons = f"{had},simulators"
    DataFolder(tmp_path).write_run(replace(RAN, addons=addons))
    with pytest.raises(UserError, match=f"its demo has {played(addons)}; leave out --argocd"):
        run(DemoOptions(data_dir=tmp_path, argocd=asked), ready=lambda _: None, tell=lambda _: None)
