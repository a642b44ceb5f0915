"""The GitHub Action: its steps, run here as a runner runs them, on a repository that `argosy init` made."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from github_runner import Runner
from in_full import in_full

from argosy.app.initializing import initialize

ROOT = Path(__file__).parents[2]
STAGING = "argocd-apps/staging-application.yaml"


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Where argosy is installed already, which takes long."""
    found = bare(tmp_path)
    program = found.temp / "argosy" / "bin" / "argosy"
    program.parent.mkdir(parents=True)
    path = os.environ.get("PYTHONPATH", "")
    program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m argosy "$@"\n')
    program.chmod(0o755)
    return found


def bare(folder: Path) -> Runner:
    initialize(folder / "workspace", "llmops", "", is_committed=True)
    (folder / "temp").mkdir()
    return Runner(ROOT, folder / "workspace", folder / "temp", {"HOME": str(folder)})


def break_staging(runner: Runner) -> None:
    file = runner.workspace / STAGING
    file.write_text(file.read_text().replace("    targetRevision:", "    nosuch: 1\n    targetRevision:"))


def test_a_repository_that_is_sound_passes_and_the_job_says_what_was_looked_at(runner: Runner) -> None:
    ran = runner.run()
    assert ran.failed == [] and ran.used == {}
    assert ran.outputs["result"] == "passed"
    assert ran.outputs["summary"].startswith("3 Applications, ") and ran.outputs["summary"] in ran.summary


def test_a_finding_is_beside_its_line_and_in_the_security_tab_and_fails_the_job(runner: Runner) -> None:
    break_staging(runner)
    ran = runner.run(sarif="true")
    assert ran.failed == ["Run argosy"] and ran.outputs["result"] == "failed"
    assert f"::warning file={STAGING},line=14,title=AGY151::" in ran.printed["Run argosy"]
    uploaded = ran.used["github/codeql-action/upload-sarif@v3"]
    results = json.loads(Path(uploaded["sarif_file"]).read_text())["runs"][0]["results"]
    assert "AGY151" in {each["ruleId"] for each in results}


def test_a_job_can_be_lenient_and_look_at_some_folders_alone(runner: Runner) -> None:
    break_staging(runner)
    assert runner.run(fail_on="error").outputs["result"] == "passed"
    (runner.workspace / "two words").mkdir()
    ran = runner.run(path="deploy_model\ntwo words\n")
    assert ran.outputs["result"] == "passed" and "0 Applications" in ran.outputs["summary"]


def test_inputs_are_never_run_and_what_is_not_understood_is_an_error_of_the_job(runner: Runner) -> None:
    proof = runner.temp / "run"
    ran = runner.run(path=f"$(touch {proof})`touch {proof}`;touch {proof}", baseline=f"$(touch {proof})")
    assert not proof.exists()
    assert ran.failed == ["Run argosy"] and ran.outputs["result"] == "error" and "next: " in ran.printed["Run argosy"]
    assert runner.run(path="--help").outputs["result"] == "error"


def test_a_python_that_is_too_old_is_told(tmp_path: Path) -> None:
    found = bare(tmp_path)
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    ran = found.run(python=str(old))
    assert ran.failed == ["Install argosy"]
    assert "::error title=argosy::needs Python 3.11 or newer" in ran.printed["Install argosy"]


@in_full
def test_it_installs_the_argosy_that_it_is_part_of(tmp_path: Path) -> None:
    ran = bare(tmp_path).run(python=sys.executable)
    assert ran.failed == [], ran.printed
    assert "argosy 0.1.0" in ran.printed["Install argosy"] and ran.outputs["result"] == "passed"
