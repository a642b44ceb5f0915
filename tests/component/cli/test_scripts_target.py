"""Repository scripts use the cluster of KUBECONFIG and never fall back to a running sandbox."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance
from support.deadlines import HANG_SECONDS
from support.forked_commands import ARGOSY
from support.paths import ROOT
from support.tiers import in_test_all

TEMPLATES = ROOT / "src/argosy/features/init/templates/shared"
SCRIPTS = (
    "argocd-custom-healthcheck/apply-health-check-via-cr.sh",
    "argocd-custom-healthcheck/verify-health-check.sh",
    "setup_scripts/apply-argocd-apps.sh",
    "setup_scripts/setup-argocd.sh",
)


@pytest.mark.parametrize("script", [SCRIPTS[0], *map(in_test_all, SCRIPTS[1:])])
def test_script_fails_if_the_kubeconfig_file_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    environment = {**os.environ, "ARGOSY": str(ARGOSY), "KUBECONFIG": "/nonexistent"}
    folder = DataFolder()
    with folder.lock_for_this_process():
        run = RunningInstance(os.getpid(), "https://127.0.0.1:1", str(folder.kubeconfig), str(folder.root), name="demo")
        folder.write_run(run)
        done = subprocess.run(
            ["bash", str(TEMPLATES / script)],
            env=environment, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
            timeout=HANG_SECONDS,
        )  # fmt: skip
    assert done.returncode != 0
    assert "no kubeconfig at /nonexistent, which KUBECONFIG names" in done.stdout + done.stderr
