"""The embedded server and the real one, behind one face.

In: nothing but what is installed. Out: a running server, and how long it took until /readyz said ok.
"""

from __future__ import annotations

import base64
import contextlib
import os
import select
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
ARGOSY = Path(sys.executable).parent / "argosy"
START_SECONDS = 60.0

sys.path.insert(0, str(ROOT / "tests"))

from support import control_plane as real  # noqa: E402 - the tests' own way to start one

LOAD = real.CACHE / "load"
BUILD = ROOT / "tests" / "realcluster" / "build.sh"


@dataclass(frozen=True)
class Server:
    name: str
    address: str
    authority: Path
    token: str
    kubeconfig: Path
    pids: tuple[int, ...]
    start_seconds: float
    protocols: Sequence[str]  # what it speaks; the better one counts


@contextlib.contextmanager
def embedded() -> Iterator[Server]:
    """`argosy sandbox start` with its data on the disk, in a folder that did not exist before."""
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as directory:
        folder = Path(directory) / "data"
        began = time.monotonic()
        process = subprocess.Popen(
            [str(ARGOSY), "sandbox", "start", "--data-dir", str(folder), "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": directory, "XDG_STATE_HOME": directory},
        )  # fmt: skip
        try:
            address, kubeconfig = _announced(process)
            authority, token = _credentials(kubeconfig, Path(directory) / "authority.crt")
            _wait_until_ready(address, authority)
            took = time.monotonic() - began
            yield Server("embedded", address, authority, token, kubeconfig, (process.pid,), took, ("HTTP/1.1",))
        finally:
            process.terminate()
            process.communicate(timeout=START_SECONDS)


def _announced(process: subprocess.Popen[str]) -> tuple[str, Path]:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    words = process.stdout.readline().split() if ready else []
    if "at" not in words:
        process.kill()
        raise RuntimeError(f"the sandbox did not start: {process.communicate()[1][-2000:]}")
    return words[words.index("at") + 1].rstrip(";"), Path(words[words.index("--kubeconfig") + 1])


def _credentials(kubeconfig: Path, authority: Path) -> tuple[Path, str]:
    config = yaml.safe_load(kubeconfig.read_text())
    authority.write_bytes(base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]))
    return authority, config["users"][0]["user"]["token"]


def _wait_until_ready(address: str, authority: Path) -> None:
    """Where nobody needs to log in to ask."""
    secure = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority)))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), secure)
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            with opener.open(f"{address}/readyz", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(0.01)


class _Timed(real.RealCluster):
    """A real control plane that knows when its first process was started: its certificates are not its own work."""

    began = 0.0

    def _run(self, name: str, program: Path, arguments: Sequence[str]) -> None:
        self.began = self.began or time.monotonic()
        super()._run(name, program, arguments)


@contextlib.contextmanager
def real_one() -> Iterator[Server]:
    """kube-apiserver and etcd alone: controllers would only take time and memory away from it."""
    with tempfile.TemporaryDirectory(prefix="argosy-bench-") as directory:
        plane = _Timed(Path(directory))
        try:
            plane.start(with_controllers=False)
            took = time.monotonic() - plane.began
            pids = tuple(process.pid for process in plane.processes.values())
            authority, token = Path(directory) / "ca.crt", real.ADMIN_TOKEN
            protocols = ("HTTP/1.1", "HTTP/2.0")
            yield Server("real", plane.server, authority, token, plane.kubeconfig, pids, took, protocols)
        finally:
            plane.stop()


def real_is_built() -> bool:
    return real.programs() is not None


def load_client() -> Sequence[str]:
    """The command that makes requests: the one in Go, built now if need be and possible, else the one in Python."""
    if shutil.which("go"):
        subprocess.run(["sh", str(BUILD), "load"], check=False, stdout=subprocess.DEVNULL)
    return (str(LOAD),) if LOAD.exists() else (sys.executable, str(Path(__file__).parent / "load.py"))
