"""The four scripts of llmops-via-argocd: options, lookup of the argosy program, and the arguments they pass to it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.deadlines import HANG_SECONDS

FOLDER = Path(__file__).parents[2] / "llmops-via-argocd"
BASH = shutil.which("bash") or "/bin/bash"
APPS = str(FOLDER / "argocd-apps")
APPLY = "argocd-custom-healthcheck/apply-health-check-via-cr.sh"
VERIFY = "argocd-custom-healthcheck/verify-health-check.sh"
SETUP = "setup_scripts/setup-argocd.sh"
APPLICATIONS = "setup_scripts/apply-argocd-apps.sh"
SCRIPTS = (APPLY, VERIFY, SETUP, APPLICATIONS)


def run(script: Path | str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script with an empty PATH and no environment variables except the given ones."""
    command = [BASH, str(FOLDER / script), *arguments]
    return subprocess.run(
        command, env={"PATH": "", **env}, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """A stub argosy that prints its arguments one per line and exits with 7."""
    program = tmp_path / "bin" / "argosy"
    program.parent.mkdir()
    program.write_text(f'#!{BASH}\nprintf "%s\\n" "$@"\nexit 7\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_help_shows_usage_and_succeeds_without_argosy(script: str, flag: str) -> None:
    done = run(script, flag, ARGOSY="/does/not/exist")
    assert done.returncode == 0
    assert done.stdout.startswith(f"Usage: {Path(script).name} [OPTIONS]\n")
    assert "-h, --help" in done.stdout


@pytest.mark.parametrize("option", ["-x", "--what", "word"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_unknown_option_is_named_and_argosy_is_not_called(script: str, option: str, recorder: Path) -> None:
    done = run(script, option, ARGOSY=str(recorder))
    assert done.stdout == f"Unknown option: {option}\nUse -h or --help for usage information\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    "script, arguments, expected_arguments",
    [
        (APPLY, [], ["health", "apply"]),
        (APPLY, ["-f"], ["health", "apply", "--force"]),
        (APPLY, ["--force"], ["health", "apply", "--force"]),
        (VERIFY, [], ["health", "verify"]),
        (SETUP, [], ["setup", "argocd", "--apps", APPS]),
        (SETUP, ["--show-password"], ["setup", "argocd", "--apps", APPS, "--show-password"]),
        (APPLICATIONS, [], ["setup", "apps", APPS]),
    ],
)
def test_script_passes_arguments_to_argosy_and_returns_its_exit_code(
    script: str, arguments: list[str], expected_arguments: list[str], recorder: Path
) -> None:
    done = run(script, *arguments, ARGOSY=str(recorder))
    assert done.stdout.splitlines() == expected_arguments, done.stderr
    assert done.returncode == 7


@pytest.mark.parametrize("script", SCRIPTS)
def test_missing_argosy_prints_the_install_command(script: str, tmp_path: Path) -> None:
    alone = Path(shutil.copy(FOLDER / script, tmp_path))
    done = run(alone)
    assert done.stderr == "Error: argosy was not found. Install it with: make -C PATH-OF-ITS-CHECKOUT install\n"
    assert (done.returncode, done.stdout) == (3, "")


def checkout_in(folder: Path, script: str) -> Path:
    """Create a checkout of the project without a .venv, as after `git clone`; return the script in it."""
    copy = folder / "checkout" / "llmops-via-argocd" / script
    copy.parent.mkdir(parents=True)
    shutil.copy(FOLDER / script, copy)
    (folder / "checkout/src/argosy").mkdir(parents=True)
    (folder / "checkout/src/argosy/__init__.py").touch()
    return copy


@pytest.mark.parametrize("script", SCRIPTS)
def test_missing_argosy_in_a_checkout_prints_the_checkout_path(script: str, tmp_path: Path) -> None:
    done = run(checkout_in(tmp_path, script))
    assert done.stderr.endswith(f"Install it with: make -C {tmp_path / 'checkout'} install\n")
    assert done.returncode == 3


@pytest.mark.parametrize("script", SCRIPTS)
def test_argosy_is_looked_up_in_variable_then_checkout_then_path(script: str, tmp_path: Path, recorder: Path) -> None:
    copy = checkout_in(tmp_path, script)
    assert run(copy, PATH=str(recorder.parent)).returncode == 7
    own = tmp_path / "checkout/.venv/bin/argosy"
    own.parent.mkdir(parents=True)
    own.write_text(f"#!{BASH}\nexit 8\n")
    own.chmod(0o755)
    assert run(copy, PATH=str(recorder.parent)).returncode == 8
    assert run(copy, PATH=str(recorder.parent), ARGOSY=str(recorder)).returncode == 7


@pytest.mark.parametrize("script", SCRIPTS)
def test_argosy_variable_naming_no_program_is_an_error(script: str, recorder: Path) -> None:
    done = run(script, PATH=str(recorder.parent), ARGOSY="/does/not/exist")
    assert done.stderr == "Error: ARGOSY is set to /does/not/exist, which is not a program\n"
    assert done.returncode == 3


def test_script_called_by_bare_name_finds_the_applications_folder(recorder: Path) -> None:
    command = [BASH, "apply-argocd-apps.sh"]
    env = {"PATH": "", "ARGOSY": str(recorder)}
    done = subprocess.run(
        command,
        cwd=FOLDER / "setup_scripts",
        env=env,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.stdout.splitlines() == ["setup", "apps", APPS]


def test_all_scripts_share_the_same_lookup_code() -> None:
    begin, end = "# --- the same lines in all four scripts", "# --- end of the same lines"
    assert len({(FOLDER / script).read_text().partition(begin)[2].partition(end)[0] for script in SCRIPTS}) == 1


@pytest.mark.parametrize("script", sorted(FOLDER.rglob("*.sh")), ids=lambda path: path.name)
def test_script_uses_strict_mode_and_has_valid_syntax(script: Path) -> None:
    first, *_ = script.read_text().splitlines()
    shell, strict = {"#!/bin/sh": ("sh", "set -eu"), "#!/usr/bin/env bash": (BASH, "set -euo pipefail")}[first]
    assert f"\n{strict}\n" in script.read_text()
    assert subprocess.run([shell, "-n", script], timeout=HANG_SECONDS, check=False).returncode == 0
