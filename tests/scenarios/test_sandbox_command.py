"""`argosy sandbox` commands: start, stop, status, reset, kubeconfig, version, and invalid usage."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from support.clusters import ARGOSY, Endpoint, Sandbox, argosy, configmap, environment, kubectl, sandbox
from support.deadlines import HANG_SECONDS
from support.tiers import IN_TEST_ALL

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def says_only(err: str, *words: str) -> None:
    assert err.startswith("argosy: ") and "Traceback" not in err, err
    for word in words:
        assert word in err, err


# -- start -------------------------------------------------------------------------------------------------------


def test_start_prints_one_line_with_address_and_kubectl_command(running: Sandbox) -> None:
    kubeconfig = running.folder / "kubeconfig"
    assert running.line == (
        f"sandbox ready at {running.address}; try: kubectl --kubeconfig {kubeconfig} get namespaces\n"
    )
    assert running.request("GET", "/readyz").body == b"ok"
    running.end()
    assert running.process.returncode == 0
    assert running.rest_of_stdout() == ""


@pytest.mark.usefixtures("needs_kubectl")
def test_kubectl_command_printed_by_start_works(shared: Sandbox) -> None:
    command = shared.line.partition("try: kubectl --kubeconfig ")[2].split()
    done = kubectl(Path(command[0]), *command[1:])
    assert done.code == 0 and "kube-system" in done.out


def test_data_folder_is_readable_only_by_its_owner(shared: Sandbox) -> None:
    shared.request("POST", CONFIGMAPS, configmap("one"))
    modes = {file: mode(file) for file in (shared.folder, *shared.folder.rglob("*"))}
    assert {file.name for file in modes} >= {"kubeconfig", "argosy.db", "argosy.db-wal", "secret.key", "server.key"}
    wrong = {file: oct(mode) for file, mode in modes.items() if mode != (0o700 if file.is_dir() else 0o600)}
    assert not wrong


def test_server_listens_on_loopback_only(shared: Sandbox) -> None:
    listening = {
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[1].rpartition(":")[2], 16) == shared.endpoint.port
    }
    assert listening == {f"0100007F:{shared.endpoint.port:04X}"}


def test_second_start_on_the_same_folder_is_refused(shared: Sandbox) -> None:
    done = argosy("sandbox", "start", "--data-dir", shared.folder, home=shared.folder.parent)
    assert done.code == 2 and done.out == ""
    says_only(done.err, "in use", str(shared.process.pid), "argosy sandbox stop")
    assert shared.request("GET", "/readyz").code == 200


@pytest.mark.tier("all")
def test_two_sandboxes_have_separate_data_and_tokens(shared: Sandbox, home: Path) -> None:
    with sandbox(home / "other", "--port", "0") as other:
        assert other.request("POST", CONFIGMAPS, configmap("here")).code == 201
        assert shared.request("GET", f"{CONFIGMAPS}/here").code == 404
        stranger = Endpoint(shared.address, (shared.folder / "tls/ca.crt").read_text(), other.endpoint.token)
        assert stranger.request("GET", CONFIGMAPS).code == 401


def test_restart_keeps_data_token_port_and_certificates(home: Path) -> None:
    with sandbox(home / "data", "--port", "0") as first:
        assert first.request("POST", CONFIGMAPS, configmap("kept", {"a": "1"})).code == 201
        before = first.kubeconfig.read_text()
        authority = (first.folder / "tls/ca.crt").read_bytes()
        first.end()
    with sandbox(home / "data") as second:
        assert second.address == first.address
        assert second.kubeconfig.read_text() == before
        assert (second.folder / "tls/ca.crt").read_bytes() == authority
        assert first.endpoint.request("GET", f"{CONFIGMAPS}/kept").json()["data"] == {"a": "1"}


@pytest.mark.tier("all")
def test_start_picks_another_port_if_the_last_one_is_taken(home: Path) -> None:
    with sandbox(home / "data", "--port", "0") as first:
        first.end()
    with socket.create_server(("127.0.0.1", first.endpoint.port)), sandbox(home / "data") as second:
        assert second.endpoint.port != first.endpoint.port
        assert second.request("GET", "/readyz").code == 200


def test_explicit_port_in_use_is_refused(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = argosy("sandbox", "start", "--data-dir", home / "data", "--port", port, home=home)
    assert done.code == 2
    says_only(done.err, str(port), "in use", "--port")


@pytest.mark.parametrize("port", ["-1", "65536", "many"])
def test_invalid_port_is_refused(home: Path, port: str) -> None:
    done = argosy("sandbox", "start", "--data-dir", home / "data", f"--port={port}", home=home)
    assert done.code == 2
    says_only(done.err, port)


def test_data_dir_that_is_a_file_is_refused(home: Path) -> None:
    file = home / "file"
    file.write_text("mine")
    done = argosy("sandbox", "start", "--data-dir", file, home=home)
    assert done.code == 2 and file.read_text() == "mine"
    says_only(done.err, str(file), "--data-dir")


def test_data_dir_that_cannot_be_created_is_refused(home: Path) -> None:
    done = argosy("sandbox", "start", "--data-dir", "/proc/argosy", home=home)
    assert done.code == 2
    says_only(done.err, "/proc/argosy", "--data-dir")


def test_unwritable_state_folder_is_reported(home: Path) -> None:
    (home / "state").write_text("no folder")
    done = argosy("sandbox", "start", "--data-dir", home / "data", "--port", "0", home=home)
    assert done.code == 2
    says_only(done.err, "state")


@pytest.mark.tier("all")
def test_ephemeral_sandbox_leaves_no_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temp_folder = home / "tmp"
    temp_folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(temp_folder))
    with sandbox(home / "unused", "--ephemeral", "--port", "0") as started:
        assert started.request("POST", CONFIGMAPS, configmap("short-lived")).code == 201
        assert started.kubeconfig.is_relative_to(temp_folder)
        assert not list(temp_folder.rglob("argosy.db")), "nothing of the objects is written"
        started.end()
    assert "its data was deleted" in started.log()
    assert not list(temp_folder.iterdir()) and not (home / "unused").exists()
    assert not [file for file in (home / "state").rglob("*") if file.is_file()]


# -- kubeconfig --------------------------------------------------------------------------------------------------

OTHERS = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "work", "cluster": {"server": "https://work.example"}}],
    "users": [{"name": "me", "user": {"token": "mine"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
    "extensions": [{"name": "kept"}],
}


@pytest.mark.tier("all")
def test_existing_kubeconfig_keeps_its_other_contexts(home: Path) -> None:
    file = home / "config"
    file.write_text(yaml.safe_dump(OTHERS))
    for _ in range(2):  # the second start replaces only its own entries
        with sandbox(home / "data", "--port", "0", "--kubeconfig", str(file)) as started:
            assert started.kubeconfig == file and mode(file) == 0o600
            assert started.request("GET", "/readyz").code == 200
            started.end()
    merged = yaml.safe_load(file.read_text())
    assert [context["name"] for context in merged["contexts"]] == ["work", "argosy-data"]
    assert merged["current-context"] == "work", "nobody asked for another current context"
    assert merged["users"][0] == OTHERS["users"][0] and merged["clusters"][0] == OTHERS["clusters"][0]
    assert merged["extensions"] == OTHERS["extensions"]


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    "text",
    [
        "- a list\n",
        *(pytest.param(text, marks=IN_TEST_ALL) for text in ("a: [1\n", "contexts: 5\n", "contexts: [5]\n")),
    ],
)
def test_file_that_is_not_a_kubeconfig_is_refused_and_unchanged(home: Path, text: str) -> None:
    file = home / "config"
    file.write_text(text)
    done = argosy("sandbox", "start", "--data-dir", home / "data", "--port", "0", "--kubeconfig", file, home=home)
    assert done.code == 2 and file.read_text() == text
    says_only(done.err, str(file))


def test_kubeconfig_command_prints_a_working_kubeconfig(shared: Sandbox, home: Path) -> None:
    done = argosy("sandbox", "kubeconfig", "--data-dir", shared.folder, home=home)
    assert done.code == 0 and done.err.startswith("target: the sandbox in ") and done.err.count("\n") == 1
    assert Endpoint.of_kubeconfig(done.out).request("GET", CONFIGMAPS).code == 200


@pytest.mark.tier("all")
def test_kubeconfig_command_without_a_sandbox_exits_2(home: Path) -> None:
    done = argosy("sandbox", "kubeconfig", home=home)
    assert done.code == 2 and done.out == ""
    says_only(done.err, "argosy sandbox start")


# -- status and stop ---------------------------------------------------------------------------------------------


def test_status_shows_pid_address_and_data_folder(shared: Sandbox, home: Path) -> None:
    done = argosy("sandbox", "status", "--data-dir", shared.folder, home=home)
    assert done.code == 0
    assert str(shared.process.pid) in done.out and shared.address in done.out and str(shared.folder) in done.out
    done = argosy("sandbox", "status", "-o", "json", "--data-dir", shared.folder, home=home)
    assert done.code == 0 and json.loads(done.out) == {
        "apiVersion": "cli.argosy.dev/v1",
        "kind": "Status",
        "ready": True,
        "pid": shared.process.pid,
        "url": None,
        "api": shared.address,
        "kubeconfig": str(shared.folder / "kubeconfig"),
        "repository": None,
        "dataDir": str(shared.folder),
        "rbac": False,
        "readOnly": None,
    }


@pytest.mark.tier("all")
def test_status_without_a_sandbox_exits_1(home: Path) -> None:
    done = argosy("sandbox", "status", home=home)
    assert done.code == 1 and "not running" in done.out and "argosy sandbox start" in done.out
    done = argosy("sandbox", "status", "-o", "json", home=home)
    assert done.code == 1
    status = json.loads(done.out)
    assert status["ready"] is False and status["pid"] is None and status["api"] is None


@pytest.mark.tier("all")
def test_default_data_folder_is_below_the_user_state_folder(home: Path) -> None:
    with sandbox(home / "state/argosy/sandbox", "--port", "0", home=home):
        assert argosy("sandbox", "status", home=home).code == 0
        current = json.loads((home / "state/argosy/current.json").read_text())
        assert current["data_dir"] == str(home / "state/argosy/sandbox")
        assert argosy("sandbox", "stop", home=home).code == 0
    assert not (home / "state/argosy/current.json").exists()


def test_stop_waits_until_the_sandbox_has_exited(running: Sandbox, home: Path) -> None:
    done = argosy("sandbox", "stop", "--data-dir", running.folder, home=home)
    assert done.code == 0 and "stopped" in done.err
    assert running.process.wait(HANG_SECONDS) == 0
    done = argosy("sandbox", "stop", "--data-dir", running.folder, home=home)
    assert done.code == 0 and "no sandbox is running" in done.err


@pytest.mark.tier("all")
def test_reused_pid_of_a_killed_sandbox_is_neither_shown_nor_stopped(running: Sandbox, home: Path) -> None:
    """Here the pid in run.json belongs to another program by now."""
    running.kill()
    with subprocess.Popen(["sleep", "60"]) as innocent:
        run = json.loads((running.folder / "run.json").read_text())
        (running.folder / "run.json").write_text(json.dumps({**run, "pid": innocent.pid}))
        assert argosy("sandbox", "status", "--data-dir", running.folder, home=home).code == 1
        assert argosy("sandbox", "stop", "--data-dir", running.folder, home=home).code == 0
        with sandbox(running.folder, home=home) as second:
            status = argosy("sandbox", "status", "-o", "json", "--data-dir", running.folder, home=home)
            assert json.loads(status.out)["pid"] == second.process.pid
        assert innocent.poll() is None
        innocent.kill()


# -- reset -------------------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_reset_is_refused_while_the_sandbox_runs(shared: Sandbox, home: Path) -> None:
    done = argosy("sandbox", "reset", "-y", "--data-dir", shared.folder, home=home)
    assert done.code == 2
    says_only(done.err, "in use", "stop")
    assert shared.request("POST", CONFIGMAPS, configmap("still")).code == 201


@pytest.mark.tier("all")
def test_reset_without_a_terminal_needs_the_yes_flag(running: Sandbox, home: Path) -> None:
    running.end()
    done = argosy("sandbox", "reset", "--data-dir", running.folder, home=home)
    assert done.code == 2 and (running.folder / "argosy.db").exists()
    says_only(done.err, "-y")
    done = argosy("sandbox", "reset", "-y", "--data-dir", running.folder, home=home)
    assert done.code == 0 and {file.name for file in running.folder.iterdir()} <= {"lock"}


@pytest.mark.parametrize(
    ("reply", "code", "kept"),
    [
        ("y\n", 0, False),
        pytest.param("n\n", 2, True, marks=IN_TEST_ALL),
        pytest.param("\n", 2, True, marks=IN_TEST_ALL),
    ],
)
def test_reset_follows_the_answer_to_its_prompt(home: Path, reply: str, code: int, kept: bool) -> None:
    (home / "data").mkdir()
    (home / "data/argosy.db").write_text("precious")
    ours, terminal = pty.openpty()
    command = [str(ARGOSY), "sandbox", "reset", "--data-dir", str(home / "data")]
    os.write(ours, reply.encode())
    done = subprocess.run(
        command, stdin=terminal, capture_output=True, env=environment(home), timeout=HANG_SECONDS, check=False
    )
    os.close(ours)
    os.close(terminal)
    assert done.returncode == code and b"[y/N]" in done.stderr
    assert (home / "data/argosy.db").exists() == kept


# -- signals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=IN_TEST_ALL), signal.SIGINT])
def test_signal_stops_the_sandbox_with_exit_code_0(running: Sandbox, number: int) -> None:
    running.end(number)
    assert running.process.returncode == 0
    assert running.log().strip() == "sandbox stopped; your data is kept"


@pytest.mark.tier("all")
def test_second_signal_causes_no_traceback(running: Sandbox) -> None:
    running.process.send_signal(signal.SIGTERM)
    running.process.send_signal(signal.SIGINT)
    running.end()
    assert "Traceback" not in running.log()


# -- the command line --------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_mistyped_command_suggests_the_nearest_one(home: Path) -> None:
    done = argosy("sandbx", home=home)
    assert done.code == 2
    says_only(done.err, "did you mean 'sandbox'?")
    done = argosy("sandbox", "strat", home=home)
    assert done.code == 2
    says_only(done.err, "did you mean 'start'?")


@pytest.mark.parametrize(
    "arguments",
    [("sandbox", "start", "--nope"), ("sandbox", "load"), ("sandbox", "status", "-o", "xml"),
     ("sandbox", "user", "add"), ("version", "extra")],
)  # fmt: skip
def test_invalid_command_line_exits_2_with_a_next_step(home: Path, arguments: tuple[str, ...]) -> None:
    done = argosy(*arguments, home=home)
    assert done.code == 2 and done.out == ""
    says_only(done.err, "next: argosy", "--help")


@pytest.mark.parametrize("arguments", [("sandbox",), ("sandbox", "user")])
def test_command_group_without_a_verb_prints_usage_and_exits_2(home: Path, arguments: tuple[str, ...]) -> None:
    done = argosy(*arguments, home=home)
    assert done.code == 2 and done.out.startswith(f"usage: argosy {' '.join(arguments)} ") and done.err == ""


@pytest.mark.tier("all")
@pytest.mark.parametrize("arguments", [(), ("--help",), ("sandbox", "--help"), ("sandbox", "start", "--help")])
def test_help_is_printed_to_stdout(home: Path, arguments: tuple[str, ...]) -> None:
    done = argosy(*arguments, home=home)
    assert done.code == 0 and "sandbox" in done.out and done.err == ""


def test_version_reports_what_the_sandbox_simulates(home: Path) -> None:
    done = argosy("version", home=home)
    assert done.code == 0 and done.out.startswith("argosy ") and "not run: no scheduler" in done.out
    version_info = json.loads(argosy("version", "-o", "json", home=home).out)
    assert version_info["kind"] == "Version" and version_info["sandbox"]
    assert argosy("--version", home=home).out == f"argosy {version_info['version']}\n"
