"""Exec credential plugins: small real programs, run without a shell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from argosy.errors import TransientError, UserError
from argosy.kube.client.auth import CredentialProvider
from argosy.kube.client.connection_settings import Connection, ExecPlugin
from argosy.kube.client.exec_plugin import run_plugin
from support.deadlines import HANG_SECONDS, wait_until_async

V1 = "client.authentication.k8s.io/v1"
BEFORE_IT_ENDS = (0.2, 5.0, HANG_SECONDS)  # plugin timeouts: use the next one if the plugin had not even started
pytestmark = pytest.mark.anyio

SCRIPT = """#!{python}
import json, os, pathlib, sys
log = pathlib.Path(sys.argv[1])
runs = int(log.read_text()) + 1 if log.exists() else 1
log.write_text(str(runs))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = json.loads(os.environ.get("STATUS", "{{}}"))
status.setdefault("token", f"token-{{runs}}-{{os.environ.get('EXTRA', '')}}")
pathlib.Path(sys.argv[1] + ".info").write_text(json.dumps(info))
print(json.dumps({{"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}}))
"""


def program(folder: Path, text: str) -> str:
    path = folder / "plugin"
    path.write_text(text.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


def connection(plugin: ExecPlugin) -> Connection:
    return Connection(server="https://a.example", name="test", ca_data=b"", exec_plugin=plugin)


def plugin(folder: Path, **env: str) -> ExecPlugin:
    return ExecPlugin(
        program(folder, SCRIPT),
        V1,
        (str(folder / "runs"),),
        env,
        provide_cluster_info=True,
        interactive_mode="Never",
        cluster_config={"audience": "x"},
    )


async def test_plugin_gets_arguments_environment_and_cluster_info(tmp_path: Path) -> None:
    one = plugin(tmp_path, EXTRA="e; $(rm -rf x)")
    credential = await run_plugin(one, connection(one))
    assert credential.token == "token-1-e; $(rm -rf x)"
    assert json.loads((tmp_path / "runs.info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://a.example", "config": {"audience": "x"}}},
    }


async def test_credential_is_cached_until_it_expires(tmp_path: Path) -> None:
    status = json.dumps({"expirationTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600))})
    credentials = CredentialProvider(connection(plugin(tmp_path, STATUS=status)))
    assert [(await credentials.get_identity()).authorization for _ in range(3)] == ["Bearer token-1-"] * 3
    past = json.dumps({"expirationTimestamp": "2020-01-01T00:00:00Z"})
    credentials = CredentialProvider(connection(plugin(tmp_path, STATUS=past)))
    assert [(await credentials.get_identity()).authorization for _ in range(2)] == [
        "Bearer token-2-",
        "Bearer token-3-",
    ]


async def test_refused_credential_is_renewed_once_for_all_callers(tmp_path: Path) -> None:
    credentials = CredentialProvider(connection(plugin(tmp_path)))
    first = await credentials.get_identity()
    assert await credentials.renew_after_401(first)
    assert await credentials.renew_after_401(first)
    assert (await credentials.get_identity()).authorization == "Bearer token-2-"


async def test_plugin_failure_is_transient_only_after_an_earlier_success(tmp_path: Path) -> None:
    one = plugin(tmp_path, STATUS=json.dumps({"expirationTimestamp": "2020-01-01T00:00:00Z"}))
    credentials = CredentialProvider(connection(one))
    first = await credentials.get_identity()
    program(tmp_path, "#!{python}\nimport sys; sys.exit('try again')")
    with pytest.raises(TransientError, match=r"exec plugin .* failed with exit code 1: try again"):
        await credentials.get_identity()
    with pytest.raises(TransientError, match="try again"):
        await credentials.renew_after_401(first)
    with pytest.raises(UserError, match="try again"):
        await CredentialProvider(connection(one)).get_identity()
    program(tmp_path, SCRIPT)
    assert (await credentials.get_identity()).authorization == "Bearer token-2-"


async def test_plugin_survives_a_cancelled_caller_and_ends_when_the_provider_closes(tmp_path: Path) -> None:
    before, one, go = asyncio.all_tasks(), plugin(tmp_path), tmp_path / "go"
    waiting = "\nimport time\nwhile not pathlib.Path(sys.argv[1]).with_name('go').exists(): time.sleep(0.01)\ninfo ="
    program(tmp_path, SCRIPT.replace("\ninfo =", waiting, 1))
    credentials = CredentialProvider(connection(one))
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(credentials.get_identity(), 0.05)
    go.touch()
    first = await asyncio.wait_for(credentials.get_identity(), HANG_SECONDS)
    assert first.authorization == "Bearer token-1-"
    go.unlink()
    waiter = asyncio.create_task(credentials.renew_after_401(first))
    await wait_until_async(lambda: (tmp_path / "runs").read_text() == "2", "it runs again")
    await credentials.close()
    with pytest.raises(TransientError, match="was closed"):
        await waiter
    assert asyncio.all_tasks() == before


async def test_missing_plugin_program_shows_the_install_hint() -> None:
    missing = ExecPlugin("no-such-plugin-anywhere", V1, install_hint="brew install it")
    with pytest.raises(UserError) as caught:
        await run_plugin(missing, connection(missing))
    assert str(caught.value) == (
        "exec plugin no-such-plugin-anywhere: the program is not installed, or not in PATH\nbrew install it"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "import sys; print('SECRET'); print('please log in', file=sys.stderr); sys.exit(4)",
            "failed with exit code 4: please log in",
        ),
        ("print('SECRET')", "did not print an ExecCredential in JSON"),
        ("print('[1]')", "did not print an ExecCredential in JSON"),
        ('print(\'{{"kind": "ExecCredential", "apiVersion": "v9"}}\')', "expected ExecCredential of"),
        (f'print(\'{{{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{{{}}}}}}}}\')', "neither a token"),
    ],
)
async def test_plugin_failure_names_the_plugin_and_hides_its_stdout(tmp_path: Path, text: str, says: str) -> None:
    broken = ExecPlugin(program(tmp_path, "#!{python}\n" + text), V1, interactive_mode="Never")
    with pytest.raises(UserError, match="exec plugin") as caught:
        await run_plugin(broken, connection(broken))
    assert says in str(caught.value) and "SECRET" not in str(caught.value)


async def test_hanging_plugin_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.kube.client.exec_plugin.PLUGIN_TIMEOUT_SECONDS", 0.2)
    hanging = ExecPlugin(program(tmp_path, "#!{python}\nimport time; time.sleep(60)"), V1, interactive_mode="Never")
    with pytest.raises(TransientError, match="no answer"):
        await run_plugin(hanging, connection(hanging))


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_hanging_plugin_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    os.mkfifo(fifo := tmp_path / "told")
    descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)

    def read() -> bytes | None:
        """None: nothing was written yet, but a process still holds it open."""
        with contextlib.suppress(BlockingIOError):
            return os.read(descriptor, 100)
        return None

    script = program(tmp_path, f"#!/bin/sh\nexec 3<>{fifo}; echo begun >&3; sleep 60; true")
    hanging = ExecPlugin(script, V1, interactive_mode="Never")
    for seconds in [HANG_SECONDS] if is_cancelled else BEFORE_IT_ENDS:
        monkeypatch.setattr("argosy.kube.client.exec_plugin.PLUGIN_TIMEOUT_SECONDS", seconds)
        running = asyncio.create_task(run_plugin(hanging, connection(hanging)))
        line = await wait_until_async(lambda task=running: read() or (task.done() and b"nothing"), "it has begun")
        if line == b"begun\n":
            break
    assert line == b"begun\n"
    if is_cancelled:
        running.cancel()
    await asyncio.wait({running})
    await wait_until_async(lambda: read() == b"", "nobody is left who could write")
    os.close(descriptor)
    assert running.cancelled() if is_cancelled else "no answer" in str(running.exception())


async def test_orphaned_process_of_a_plugin_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    text = f"#!/bin/sh\nsetsid sh -c 'echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 9999'"
    left = ExecPlugin(program(tmp_path, text), V1, interactive_mode="Never")
    for seconds in BEFORE_IT_ENDS:
        monkeypatch.setattr("argosy.kube.client.exec_plugin.PLUGIN_TIMEOUT_SECONDS", seconds)
        with pytest.raises(TransientError, match="no answer"):
            await asyncio.wait_for(run_plugin(left, connection(left)), 2 * HANG_SECONDS)
        if pid.exists():
            break
    os.kill(int(pid.read_text()), signal.SIGKILL)  # fails if it is no longer running


async def test_token_file_is_reread_after_a_401_and_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = CredentialProvider(Connection(server="https://a.example", token_file=str(path)))
    first = await credentials.get_identity()
    path.write_text("two\n")
    assert (await credentials.get_identity()).authorization == first.authorization == "Bearer one"
    assert await credentials.renew_after_401(first)
    assert (await credentials.get_identity()).authorization == "Bearer two"
    path.write_text("three\n")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 61)
    assert (await credentials.get_identity()).authorization == "Bearer three"
