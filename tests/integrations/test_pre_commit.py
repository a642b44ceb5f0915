"""The pre-commit hooks: what they match and run, and pre-commit itself in tier "all"."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.features.init.service import initialize
from support.deadlines import HANG_SECONDS, TEST_HANG_SECONDS

ROOT = Path(__file__).parents[2]
HOOKS: dict[str, dict[str, Any]] = {
    hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
}
GUIDE = ROOT / "docs" / "guides" / "continuous-integration.md"
NOTEBOOK = "notebooks/train.ipynb"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    initialize(tmp_path / "models", "llmops", "", is_committed=True)
    return tmp_path / "models"


def surroundings(repository: Path) -> dict[str, str]:
    """Environment with argosy in PATH, as on a machine where it is installed."""
    home = repository.parent
    program = home / "bin" / "argosy"
    if not program.exists():
        program.parent.mkdir()
        path = os.environ.get("PYTHONPATH", "")
        program.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} -m argosy "$@"\n')
        program.chmod(0o755)
    inherited_env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))}
    who = {f"GIT_{who}_{field}": "ann@example.com" for who in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    return {**inherited_env, **who, "HOME": str(home), "PATH": f"{program.parent}:{os.environ['PATH']}"}


def hooked(name: str, repository: Path, *changed: str) -> subprocess.CompletedProcess[str] | None:
    """Run a hook as pre-commit does: only if a changed file matches, with file names if the hook takes them."""
    hook = HOOKS[name]
    matching = [file for file in changed if re.search(hook.get("files", ""), file)]
    if not matching and not hook.get("always_run"):
        return None
    command = [*hook["entry"].split(), *(matching if hook.get("pass_filenames", True) else [])]
    return subprocess.run(
        command,
        cwd=repository,
        env=surroundings(repository),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


@pytest.mark.tier("all")
def test_check_hook_checks_all_applications_for_any_changed_file(repository: Path) -> None:
    done = hooked("argosy-check", repository, "README.md")
    assert done is not None and done.returncode == 0, done
    assert "3 Applications" in done.stderr


@pytest.mark.tier("all")
def test_check_hook_fails_if_a_referenced_file_was_removed(repository: Path) -> None:
    base = repository / "deploy_model" / "base"
    (base / "servingruntime.yaml").unlink()
    done = hooked("argosy-check", repository)  # pre-commit does not list removed files
    assert done is not None and done.returncode == 1
    assert "deploy_model/base/kustomization.yaml" in done.stdout and "AGY102 error" in done.stdout


def test_notebook_hook_lints_only_changed_notebooks(repository: Path) -> None:
    assert hooked("argosy-notebook-lint", repository, "argosy.yaml") is None
    done = hooked("argosy-notebook-lint", repository, NOTEBOOK)
    assert done is not None and done.returncode == 0, done
    text = (repository / NOTEBOOK).read_text()
    silent = '"source": ["try: 1/0\\n", "except Exception: pass\\n", '
    (repository / NOTEBOOK).write_text(text.replace('"source": [', silent))
    done = hooked("argosy-notebook-lint", repository, NOTEBOOK)
    assert done is not None and done.returncode == 1 and NOTEBOOK in done.stdout


@pytest.mark.tier("all")
def test_pre_commit_runs_hooks_from_this_repository_and_from_an_installed_argosy(
    repository: Path,
) -> None:
    env = surroundings(repository)

    def typed(*words: str) -> str:
        done = subprocess.run(
            words, cwd=repository, env=env, capture_output=True, text=True, timeout=TEST_HANG_SECONDS, check=False
        )
        return f"exit {done.returncode}\n{done.stdout}{done.stderr}"

    venv = repository.parent / "tools"
    typed(sys.executable, "-m", "venv", str(venv))
    program = str(venv / "bin" / "pre-commit")
    installed = typed(str(venv / "bin" / "pip"), "install", "--quiet", "pre-commit>=4")
    if not Path(program).exists():
        pytest.skip(f"pre-commit: it could not be installed: {installed}")
    output = typed(program, "try-repo", str(ROOT), "argosy-check", "--all-files", "--verbose")
    assert output.startswith("exit 0") and "3 Applications" in output, output
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    block = next(config_block for config_block in blocks if "repo: local" in config_block)
    (repository / ".pre-commit-config.yaml").write_text(block)
    typed("git", "add", "--all")
    typed(program, "install")
    assert typed("git", "commit", "-m", "Hooks").startswith("exit 0")
    (repository / "deploy_model" / "base" / "servingruntime.yaml").unlink()
    held = typed("git", "commit", "--all", "-m", "Break the base")
    assert held.startswith("exit 1") and "AGY102 error" in held, held
