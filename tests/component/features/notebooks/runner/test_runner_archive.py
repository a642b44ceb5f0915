"""Contents of a validation Pod: the runner archive, which runs without argosy, and the clone script."""

from __future__ import annotations

import ast
import base64
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.features.notebooks.pod_runs import runner_archive_config_map
from argosy.features.notebooks.runner.pod_main import _fit_into_report
from argosy.features.notebooks.runner.progress_config_map_report import MAX_REPORT_BYTES
from argosy.features.notebooks.runner.termination_message import MAX_MESSAGE_BYTES, pack_results, unpack_results
from support.deadlines import HANG_SECONDS
from support.git_server import GitHost, git_host
from support.notebook_jobs import Repository, notebook

REFUSED, NO_REVISION, NO_ANSWER, NO_FILE = 10, 11, 12, 13


# -- termination message


def results(cells: int, output: str = "", **more: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "execution_count": 1, "status": "succeeded", "seconds": 0.125, "error": ""}
    cell_results = [
        {"cell_index": number, **cell, "output": f"{output}{number}", "traceback": ""} for number in range(cells)
    ]
    return {
        "status": "succeeded", "error": "", "error_category": "", "exit_code": 0, "cells": cell_results,
        "statistics": {"total_cells": cells}, "comparison": None, "findings": [], **more,
    }  # fmt: skip


def test_small_results_are_packed_without_loss() -> None:
    small = results(5, "a line of output ")
    assert unpack_results(pack_results(small)) == small


@pytest.mark.parametrize("cells", [10, 100, pytest.param(2000, marks=pytest.mark.tier("all"))])
def test_termination_message_fits_the_limit_and_keeps_the_error(cells: int) -> None:
    failing = {"cell_index": cells, "cell_type": "code", "status": "failed", "error": "ValueError: no", "seconds": 1.0}
    long = results(cells, status="failed", error="cell 7: ValueError: no", error_category="x", exit_code=1)
    for cell in long["cells"]:
        cell["output"] = base64.b85encode(os.urandom(1500)).decode()
    long["cells"].append(failing)
    text = pack_results(long)
    report = unpack_results(text)
    assert len(text.encode()) <= MAX_MESSAGE_BYTES
    assert report is not None
    assert (report["status"], report["error"], report["exit_code"], report["cut"]) == ("failed", long["error"], 1, True)
    if cells == 100:
        assert [failed_cell["error"] for failed_cell in report["cells"] if failed_cell["status"] == "failed"] == [
            "ValueError: no"
        ]


@pytest.mark.parametrize("text", ["", "killed", "z:", "z:!!", "[]", "{}", '{"status": "fine"}', "z:" + "0" * 4000])
def test_other_termination_messages_are_not_results(text: str) -> None:
    assert unpack_results(text) is None


def test_decompression_bomb_is_not_unpacked() -> None:
    bomb = zlib.compress(b'{"status": "failed", "error": "' + b"0" * (8 << 20) + b'"}', 9)
    assert unpack_results("z:" + base64.b85encode(bomb).decode()) is None


# -- runner archive


def test_archive_is_reproducible_and_fits_a_config_map() -> None:
    first = runner_archive_config_map.build_archive()
    runner_archive_config_map.build_archive.cache_clear()
    assert runner_archive_config_map.build_archive() == first
    assert len(first) < 200_000
    config_map = runner_archive_config_map.build_config_map(
        "ml", {}, {"kind": "NotebookValidationJob", "name": "train", "uid": "1"}
    )
    assert (
        config_map["metadata"]["name"] == runner_archive_config_map.build_config_map_name()
        and config_map["immutable"] is True
    )


def run_archive(folder: Path, errand: Any, *flags: str, **env: str) -> tuple[int, str, dict[str, Any]]:
    (folder / "runner.pyz").write_bytes(runner_archive_config_map.build_archive())
    (folder / "errand.json").write_text(json.dumps(errand))
    words = folder / "last-words"
    command = [sys.executable, *flags, str(folder / "runner.pyz"), str(folder / "errand.json")]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERMINATION_LOG": str(words), **env}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    return done.returncode, done.stdout + done.stderr, unpack_results(words.read_text()) or {}


@pytest.mark.tier("all")
def test_archive_alone_runs_a_notebook_and_reports_results(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    models = tmp_path / "models"
    models.mkdir()
    write = f"open('{models}/model', 'w').write('fitted')"
    (tmp_path / "a.ipynb").write_text(notebook(("rate = 1", ["parameters"]), "print('rate', rate)", write))
    paths = {name: f"{tmp_path}/{name}" for name in ("results", "events", "output")}
    order = {"notebook": f"{tmp_path}/a.ipynb", "named": "a.ipynb", "parameters": {"rate": 2}, **paths}
    code, output, report = run_archive(tmp_path, {"order": order, "claims": [str(models)]})
    assert code == 0, output
    assert (report["status"], report["notebook_path"], report["cells"][-2]["output"]) == (
        "succeeded",
        "a.ipynb",
        "rate 2\n",
    )
    assert report["artefacts"][0]["path"] == f"{models}/model"
    assert "cell 2 code Success" in output and "Results Summary:" in output
    assert "cell 2 code Success" in (tmp_path / "execution.log").read_text()


@pytest.mark.tier("all")
def test_sigterm_ends_the_run_and_its_kernel(tmp_path: Path) -> None:
    """The kubelet sends SIGTERM when a Pod is deleted."""
    pytest.importorskip("nbclient")
    pid = "import os\nopen('pid', 'w').write(str(os.getpid()))"
    (tmp_path / "a.ipynb").write_text(notebook(pid, "print('begun')", "import time\ntime.sleep(300)"))
    (tmp_path / "runner.pyz").write_bytes(runner_archive_config_map.build_archive())
    paths = {name: f"{tmp_path}/{name}" for name in ("results", "events", "output")}
    (tmp_path / "errand.json").write_text(json.dumps({"order": {"notebook": f"{tmp_path}/a.ipynb", **paths}}))
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "runner.pyz"), str(tmp_path / "errand.json")], stdout=subprocess.PIPE,
        text=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERMINATION_LOG": str(tmp_path / "w")},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        while "cell 1 code Success" not in (line := process.stdout.readline()):
            assert line, "it ended"
        kernel = int((tmp_path / "pid").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=HANG_SECONDS) == 143
        assert not (tmp_path / "w").exists(), "the notebook was not judged"
        ends = time.monotonic() + HANG_SECONDS
        while Path(f"/proc/{kernel}").exists():
            assert time.monotonic() < ends, "its kernel is still there"
            time.sleep(0.05)
    finally:
        process.kill()
        process.stdout.close()


@pytest.mark.tier("all")
def test_operator_does_not_need_jupyter_packages() -> None:
    """The image of the operator contains only argosy."""
    names = ("nbclient", "nbformat", "jupyter_client", "ipykernel")
    program = f"import sys\nfor name in {names}: sys.modules[name] = None\n"
    program += "from argosy.features.notebooks.addon import make\nprint(make('pods').name)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "notebooks=pods\n", done.stderr


def test_secrets_printed_by_a_notebook_are_redacted(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    secret = tmp_path / "given"
    secret.mkdir()
    (secret / "key").write_text('pass"word-1\nand a second line\n')
    show = f"text = open('{secret}/key').read()\nprint(text)\nraise ValueError(text.strip())"
    (tmp_path / "a.ipynb").write_text(notebook(show))
    paths = {name: f"{tmp_path}/{name}" for name in ("results", "events", "output")}
    order = {"notebook": f"{tmp_path}/a.ipynb", **paths}
    code, output, report = run_archive(tmp_path, {"order": order, "secrets": [str(secret)]})
    assert (code, report["status"]) == (1, "failed")
    for text in (output, json.dumps(report), (tmp_path / "execution.log").read_text()):
        assert "word-1" not in text and "a second line" not in text
        assert "[REDACTED]" in text


def test_report_of_many_verbose_cells_fits_the_limit_and_lists_each_cell() -> None:
    cell = {"event": "cell", "type": "code", "status": "Success", "seconds": 0.1, "output": "x" * 2000}
    lines = "".join(json.dumps({**cell, "cell": number}) + "\n" for number in range(1000))
    report = _fit_into_report(lines)
    assert len(report) <= MAX_REPORT_BYTES < len(lines)
    assert [json.loads(line)["cell"] for line in report.splitlines()] == list(range(1000))
    assert {json.loads(line)["status"] for line in report.splitlines()} == {"Success"}
    assert _fit_into_report("short\n") == "short\n"


def test_old_python_version_is_reported(tmp_path: Path) -> None:
    """The main module must not need a newer version, not even to be parsed."""
    words = tmp_path / "last-words"
    old = runner_archive_config_map.MAIN_SOURCE.replace("sys.version_info", "(3, 9)")
    done = subprocess.run(
        [sys.executable, "-c", old], env={"TERMINATION_LOG": str(words)}, capture_output=True, text=True, check=False
    )
    report = unpack_results(words.read_text())
    assert report is not None
    assert report["error"] == "the image has Python 3.9; use an image with 3.11 or later"
    assert done.returncode == 1
    ast.parse(runner_archive_config_map.MAIN_SOURCE, feature_version=(3, 7))


@pytest.mark.tier("all")
def test_image_without_nbclient_is_reported(tmp_path: Path) -> None:
    """Without site-packages there is neither nbclient nor pip."""
    code, output, report = run_archive(tmp_path, {"order": {"notebook": "a.ipynb"}}, "-S", "-E")
    assert code == 2, output
    assert report["error_category"] == "dependency_install_failed"
    assert "the image lacks nbclient" in report["error"]


def test_errand_without_a_notebook_is_a_configuration_error(tmp_path: Path) -> None:
    code, _, report = run_archive(tmp_path, {"order": {}})
    assert (code, report["error_category"]) == (2, "configuration_error")
    assert "names no notebook" in report["error"]


# -- clone script


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    new_repository = Repository(tmp_path_factory.mktemp("hosted") / "notebooks.git")
    new_repository.first = new_repository.commit({"train.ipynb": notebook("1")})  # type: ignore[attr-defined]
    new_repository.second = new_repository.commit({"train.ipynb": notebook("2"), "deep/a.ipynb": notebook("3")})  # type: ignore[attr-defined]
    return new_repository


@pytest.fixture
def host(repository: Repository) -> Iterator[GitHost]:
    with git_host(repository.folder.parent) as git_server:
        yield git_server


def clone(folder: Path, *words: str, **env: str) -> tuple[int, str]:
    script, last_words = folder / "clone.sh", folder / "last-words"
    script.write_text(runner_archive_config_map.load_clone_script())
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERMINATION_LOG": str(last_words), **env}
    command = ["/bin/sh", str(script), *words[:2], str(folder / "repo"), *words[2:]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
    return done.returncode, last_words.read_text() if last_words.exists() else done.stderr


def test_branch_commit_and_abbreviated_commit_are_cloned(tmp_path: Path, host: GitHost, repository: Any) -> None:
    url = f"{host.url}/notebooks.git"
    commits_by_ref = {
        "main": repository.second,
        repository.first: repository.first,
        repository.first[:8]: repository.first,
    }
    for ref, commit in commits_by_ref.items():
        assert clone(tmp_path, url, ref, "train.ipynb") == (0, commit)
        assert json.loads((tmp_path / "repo/train.ipynb").read_text())["nbformat"] == 4


def test_cloned_files_are_writable_by_other_users(tmp_path: Path, host: GitHost) -> None:
    clone(tmp_path, f"{host.url}/notebooks.git", "main", "deep/a.ipynb")
    assert (tmp_path / "repo/deep").stat().st_mode & 0o777 == 0o777
    assert (tmp_path / "repo/deep/a.ipynb").stat().st_mode & 0o666 == 0o666


@pytest.mark.parametrize(("ref", "file", "code", "words"), [
    ("nowhere", "train.ipynb", NO_REVISION, "couldn't find remote ref nowhere"),
    pytest.param("0123456789abcdef0123456789abcdef01234567", "train.ipynb", NO_REVISION, "01234567 not found",
                 marks=pytest.mark.tier("all")),
    ("main", "missing.ipynb", NO_FILE, "file missing.ipynb not found at"),
    ("main", "../repo/train.ipynb", NO_FILE, "is outside of the repository"),
    ("--upload-pack=touch here", "train.ipynb", NO_REVISION, "starts with a dash"),
    ("main:refs/heads/here", "train.ipynb", NO_REVISION, "is not a branch, tag or commit"),
    pytest.param("main; touch here", "train.ipynb", NO_REVISION, "", marks=pytest.mark.tier("all")),
    ("$(touch here)", "train.ipynb", NO_REVISION, ""),
])  # fmt: skip
def test_invalid_refs_and_files_are_reported_and_never_executed(
    tmp_path: Path, host: GitHost, ref: str, file: str, code: int, words: str
) -> None:
    exit_code, message = clone(tmp_path, f"{host.url}/notebooks.git", ref, file)
    assert (exit_code, words in message) == (code, True), message
    assert not list(tmp_path.rglob("here"))


def test_unreachable_host_has_its_own_exit_code(tmp_path: Path) -> None:
    assert clone(tmp_path, "http://127.0.0.1:1/a.git", "main", "train.ipynb")[0] == NO_ANSWER


def test_file_and_ext_urls_are_not_cloned(tmp_path: Path, repository: Repository) -> None:
    for url in (f"file://{repository.folder}", "ext::sh -c 'touch here'"):
        assert clone(tmp_path, url, "main", "train.ipynb")[0] == NO_ANSWER
    assert not list(tmp_path.rglob("here"))


def test_credentials_are_read_from_files_and_not_stored_in_the_clone(tmp_path: Path, host: GitHost) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "username").write_text("robot")
    (secret / "token").write_text("s3cret-word")
    host.wanted = "Basic " + base64.b64encode(b"robot:s3cret-word").decode()
    url = f"{host.url}/notebooks.git"
    assert clone(tmp_path, url, "main", "train.ipynb")[0] == REFUSED
    code, message = clone(tmp_path, url, "main", "train.ipynb", CREDENTIALS=str(secret))
    assert code == 0, message
    assert not any(b"s3cret" in command for command in host.commands)
    left = [file for file in (tmp_path / "repo").rglob("*") if file.is_file() and b"s3cret" in file.read_bytes()]
    assert left == []
    (secret / "token").write_text("another")
    assert clone(tmp_path, url, "main", "train.ipynb", CREDENTIALS=str(secret))[0] == REFUSED


def test_credentials_are_not_sent_to_a_redirect_target(tmp_path: Path, repository: Repository) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    for name in ("username", "password"):
        (secret / name).write_text("s3cret-word")
    with git_host(repository.folder.parent) as named, git_host(repository.folder.parent) as other:
        named.redirect, other.wanted = other.url, "Basic whatever"
        code, _ = clone(tmp_path, f"{named.url}/notebooks.git", "main", "train.ipynb", CREDENTIALS=str(secret))
        assert code == REFUSED
        assert {authorization for _, authorization in other.seen} == {""}


@pytest.mark.parametrize(("files", "words"), [
    ({}, "neither ssh-privatekey nor username"),
    ({"username": "robot"}, "neither ssh-privatekey nor username"),
    ({"ssh-privatekey": "a key"}, "no SSH host keys are known"),
])  # fmt: skip
def test_unusable_credentials_secret_is_reported(tmp_path: Path, files: dict[str, str], words: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    for name, text in files.items():
        (secret / name).write_text(text)
    code, message = clone(tmp_path, "ssh://git@127.0.0.1/a.git", "main", "a.ipynb", CREDENTIALS=str(secret))
    assert (code, words in message) == (REFUSED, True), message
