"""`argosy sandbox load`, `user add` and `kubeconfig` print their target and never silently ignore another one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.cli.exit_codes import EXIT_ERROR
from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance, get_state_folder
from argosy.features.serve.running_server_login_urls import write_state_file
from argosy.kube.objects import dump_yaml
from argosy.main import main

API = "https://127.0.0.1:1"
ACTING = [["sandbox", "load", "-f", "manifests.yaml"], ["sandbox", "user", "add", "ann"]]


def write_kubeconfig(file: Path, server: str) -> Path:
    document = {
        "current-context": "prod",
        "contexts": [{"name": "prod", "context": {"cluster": "prod"}}],
        "clusters": [{"name": "prod", "cluster": {"server": server}}],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dump_yaml(document))
    return file


@contextlib.contextmanager
def running_demo() -> Iterator[DataFolder]:
    folder = DataFolder(get_state_folder() / "demo")
    with folder.lock_for_this_process():
        write_kubeconfig(folder.kubeconfig, API)
        folder.write_run(RunningInstance(os.getpid(), API, str(folder.kubeconfig), str(folder.root), name="demo"))
        yield folder


@pytest.fixture(autouse=True)
def acted_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that the commands acted on; nothing is sent to a cluster."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    folders: list[Path] = []

    def note(folder: DataFolder, *_: object) -> str:
        folders.append(folder.root)
        return ""

    monkeypatch.setattr("argosy.features.local_sandbox.sandbox_manifest_apply.apply_manifest_files", note)
    monkeypatch.setattr("argosy.features.local_sandbox.sandbox_user_creation.add_user", note)
    return folders


@pytest.mark.parametrize("words", ACTING, ids=" ".join)
def test_sandbox_command_prints_its_target(
    words: list[str], acted_on: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with running_demo() as folder:
        assert main(words) == 0
    assert acted_on == [folder.root]
    assert capsys.readouterr().err == f"target: the demo ({API})\n"


@pytest.mark.parametrize("words", ACTING, ids=" ".join)
@pytest.mark.parametrize("variable", ["KUBECONFIG", "ARGOSY_CONTEXT"])
def test_variable_that_selects_another_cluster_is_rejected(
    words: list[str],
    variable: str,
    acted_on: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_kubeconfig(tmp_path / ".kube" / "config", "https://prod.example.com")
    monkeypatch.setenv(variable, {"KUBECONFIG": str(tmp_path / ".kube" / "config"), "ARGOSY_CONTEXT": "prod"}[variable])
    with running_demo():
        assert main(words) == EXIT_ERROR
    assert acted_on == []
    assert capsys.readouterr().err == (
        f"argosy: {variable} selects context prod (https://prod.example.com), which is not a running sandbox\n"
        f"next: select the sandbox with --data-dir, or unset {variable}\n"
    )


def test_data_dir_flag_takes_precedence_over_environment_variables(
    acted_on: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    with running_demo() as folder:
        assert main(["sandbox", "load", "-f", "x", "--data-dir", str(folder.root)]) == 0
        assert acted_on == [folder.root]
        assert main(["sandbox", "load", "-f", "x"]) == EXIT_ERROR
    assert acted_on == [folder.root]


def test_kubeconfig_of_the_demo_selects_the_demo_over_a_running_sandbox(
    acted_on: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = DataFolder()
    with running_demo() as demo, usual.lock_for_this_process():
        usual.write_run(RunningInstance(os.getpid(), "https://127.0.0.1:2", str(usual.kubeconfig), str(usual.root)))
        main(["sandbox", "load", "-f", "x"])
        monkeypatch.setenv("KUBECONFIG", str(demo.kubeconfig))
        main(["sandbox", "load", "-f", "x"])
    assert acted_on == [usual.root, demo.root]


def test_printed_kubeconfig_names_its_target_and_notes_a_different_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_demo() as folder:
        assert main(["sandbox", "kubeconfig"]) == 0
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == (folder.kubeconfig.read_text(), f"target: the demo ({API})\n")
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "prod", "https://prod.example.com")))
        assert main(["sandbox", "kubeconfig"]) == 0
        assert capsys.readouterr().err == (
            f"target: the demo ({API})\n"
            "note: KUBECONFIG selects another cluster: context prod (https://prod.example.com)\n"
        )
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
        assert main(["sandbox", "kubeconfig"]) == 0  # the file may be written later
        assert capsys.readouterr().err.splitlines()[1] == (
            f"note: KUBECONFIG is invalid: kubeconfig: no kubeconfig at {tmp_path / 'gone'}, which KUBECONFIG names"
        )
    monkeypatch.delenv("KUBECONFIG")
    assert main(["sandbox", "kubeconfig", "--data-dir", str(folder.root)]) == 0
    assert capsys.readouterr().err == f"target: the sandbox in {folder.root}, which is not running\n"


def test_open_does_not_open_the_web_ui_of_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "http://127.0.0.1:9000"
    with running_demo() as demo:
        demo.write_run(RunningInstance(os.getpid(), API, str(demo.kubeconfig), str(demo.root), name="demo", url=page))
        for file in (None, demo.kubeconfig):
            monkeypatch.setenv("KUBECONFIG", str(file or ""))
            assert main(["open", "--no-browser"]) == 0
            assert capsys.readouterr().out.startswith(f"{page}/enter?code=")
        monkeypatch.setenv("KUBECONFIG", str(write_kubeconfig(tmp_path / "prod", "https://prod.example.com")))
        assert main(["open", "--no-browser"]) == EXIT_ERROR
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err == (
            "argosy: KUBECONFIG selects context prod (https://prod.example.com), and no web server is running for it\n"
            "next: start one: argosy serve, or open the one of another cluster: argosy open --port 9000\n"
        )
        assert main(["open", "--no-browser", "--port", "9000"]) == 0
        served = "http://127.0.0.1:9001"
        with write_state_file(get_state_folder() / "page", served, "context prod (https://prod.example.com)"):
            capsys.readouterr()
            assert main(["open", "--no-browser"]) == 0
            assert capsys.readouterr().out.startswith(f"{served}/enter?code=")
