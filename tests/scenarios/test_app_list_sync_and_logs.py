"""`argosy app list`, `diff`, `sync` and `logs`: differing fields, watches, several sources, invalid log requests."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from argosy.kube.resource_key import ResourceKey
from support.app_commands import HANG, Scene, scene
from support.deadlines import HANG_SECONDS
from support.engine import config_map

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with scene(tmp_path) as opened_scene:
        opened_scene.repository.push({"app/settings.yaml": config_map(a="one", b="two")})
        yield opened_scene


async def test_app_list_counts_differing_fields(desk: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("argosy.gitops.application_client.app_list_explanations.TIMEOUT_SECONDS", HANG_SECONDS)
    await desk.deliver(syncPolicy={"automated": {}})
    await desk.until_synced()
    await desk.cluster.patch(SETTINGS, {"data": {"a": "x", "b": "y"}})
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")
    counted = await desk.argosy("app", "list")
    assert "2 fields differ" in counted.out, counted
    quick = await desk.argosy("app", "list", "--quick")
    assert "1 of 1 objects differ: ConfigMap/settings" in quick.out, quick


async def typed(desk: Scene, *words: str) -> asyncio.subprocess.Process:
    """Start an argosy command as a subprocess."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "argosy", *words, "--kubeconfig", str(desk.kubeconfig),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def test_app_list_watch_prints_a_line_per_change_and_exits_0_on_sigint(desk: Scene) -> None:
    await desk.deliver()
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")
    process = await typed(desk, "app", "list", "-w", "-o", "json")
    assert process.stdout is not None
    async with asyncio.timeout(HANG_SECONDS):
        first = json.loads(await process.stdout.readline())
        assert first["status"]["sync"]["status"] == "OutOfSync"
        await desk.sync()
        while json.loads(await process.stdout.readline())["status"]["sync"]["status"] != "Synced":
            pass
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")


@pytest.mark.tier("all")
async def test_app_sync_in_a_terminal_shows_waves_and_obeys_no_color(desk: Scene) -> None:
    wave = {"annotations": {"argocd.argoproj.io/sync-wave": "2"}}
    late = config_map("late", a="one")
    desk.repository.push({"app/late.yaml": {**late, "metadata": {**late["metadata"], **wave}}})
    await desk.deliver()
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync" and len(status["resources"]) == 2)
    for colour in ({"NO_COLOR": "1"}, {"NO_COLOR": ""}):
        drawn = await asyncio.to_thread(in_a_terminal, desk, colour, "app", "sync", "models")
        assert "wave 0" in drawn and "wave 2" in drawn and "ConfigMap/late" in drawn, drawn
        assert ("\x1b[32m" in drawn) == (not colour["NO_COLOR"]), drawn


def in_a_terminal(desk: Scene, settings: dict[str, str], *words: str) -> str:
    """Return everything that a command prints when stdout is a terminal."""
    ours, terminal = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **settings}
    command = [sys.executable, "-m", "argosy", *words, "--kubeconfig", str(desk.kubeconfig)]
    with subprocess.Popen(command, stdout=terminal, stderr=subprocess.PIPE, stdin=terminal, env=settings) as process:
        os.close(terminal)
        output = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux raises this when the other end of the pty is closed
                break
            if not part:
                break
            output += part
        _, errors = process.communicate()
    os.close(ours)
    assert process.returncode == 0, errors
    return output.decode()


@pytest.mark.tier("all")
async def test_app_commands_support_applications_with_several_sources(desk: Scene) -> None:
    desk.repository.push({"other/second.yaml": config_map("second", c="three")})
    here = {"repoURL": desk.repository.url, "targetRevision": "main"}
    sources = [{**here, "path": path, "name": path} for path in ("app", "other")]
    await desk.deliver(source=None, sources=sources)
    await desk.until(lambda status: status["sync"]["status"] == "OutOfSync")
    differs = await desk.argosy("app", "diff", "models")
    assert differs.code == 1 and "2 objects to create" in differs.err, differs
    manifests = await desk.argosy("app", "manifests", "models", "-o", "name")
    assert sorted(manifests.out.split()) == ["configmap/second", "configmap/settings"]
    synced = await desk.argosy("app", "sync", "models", "--timeout", HANG)
    short = desk.repository.head[:7]
    assert synced.code == 0 and f"sync to {short}, {short} succeeded" in synced.err, synced
    result = await desk.argosy("app", "get", "models")
    assert "Sources:" in result.out and result.out.count("- Repo:") == 2 and "  Path:             other" in result.out
    listed = await desk.argosy("app", "list")
    assert f"{short},{short}" in listed.out
    history = await desk.argosy("app", "history", "models")
    assert f"main ({short}), main ({short})" in history.out, history


@pytest.mark.tier("all")
async def test_app_logs_rejects_an_invalid_duration_and_a_missing_previous_container(desk: Scene) -> None:
    wrong = await desk.argosy("app", "logs", "models", "--since", "soon")
    assert wrong.code == 2 and "why: --since: invalid duration 'soon'" in wrong.err
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
           "spec": {"containers": [{"name": "main", "image": "x"}]}}  # fmt: skip
    desk.repository.push({"app/pod.yaml": pod})
    await desk.deliver(syncPolicy={"automated": {}})
    await desk.until_synced()
    before = await desk.argosy("app", "logs", "models", "--previous", "--since", "10m", "--tail", "5")
    assert before.code == 2, before
    assert 'previous terminated container "main" in pod "one" not found' in before.err
