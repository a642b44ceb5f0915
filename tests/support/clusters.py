"""Starts the real server for tests: `argosy sandbox start` as a process, or a control plane served in this process.

In: a data folder and flags. Out: a Sandbox that serves requests. Never: leaves a process behind.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import select
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from argosy.sandbox.apiserver.https_server import serve_https
from argosy.sandbox.apiserver.tls import ensure_certificates
from support import forked_commands
from support.deadlines import HANG_SECONDS, wait_until
from support.failure_report import record_log

ARGOSY = Path(sys.executable).parent / "argosy"
KUBECTL = Path(sys.executable).parent / "kubectl"
TOKEN = "admin-of-a-test"
# Saves time in thousands of short processes: none needs garbage collection or public CA certificates.
QUICK = {"GOGC": "400", "SSL_CERT_FILE": os.devnull}


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Finished(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str
    seconds: float


class Endpoint:
    """Address and credentials of a server; each call is one request."""

    def __init__(self, address: str, authority: str, token: str) -> None:
        self.address, self.token = address, token
        self.host, _, port = address.removeprefix("https://").rpartition(":")
        self.port = int(port)
        self.tls = ssl.create_default_context(cadata=authority)

    @classmethod
    def of_kubeconfig(cls, text: str, context: str = "") -> Endpoint:
        config = yaml.safe_load(text)
        context_info = {item["name"]: item["context"] for item in config["contexts"]}[
            context or config["current-context"]
        ]
        cluster = {item["name"]: item["cluster"] for item in config["clusters"]}[context_info["cluster"]]
        user = {item["name"]: item["user"] for item in config["users"]}[context_info["user"]]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cls(cluster["server"], authority, user["token"])

    def connection(self, timeout: float = HANG_SECONDS) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, context=self.tls, timeout=timeout)

    def request(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **headers: str
    ) -> Answer:
        connection = self.connection()
        try:
            return ask(connection, method, path, body, media, token=self.token, **headers)
        finally:
            connection.close()


def ask(
    connection: http.client.HTTPSConnection,
    method: str,
    path: str,
    body: Any = None,
    media: str = "application/json",
    *,
    token: str = "",
    **headers: str,
) -> Answer:
    """Send a request on a kept-alive connection."""
    header_map = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        header_map["Authorization"] = f"Bearer {token}"
    if body is not None:
        header_map["Content-Type"] = media
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, body, header_map)
    response = connection.getresponse()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


class Sandbox:
    """A running `argosy sandbox start`."""

    def __init__(
        self,
        process: subprocess.Popen[str] | forked_commands.Started,
        line: str,
        folder: Path,
        log: Path,
        environment: Any,
    ) -> None:
        self.process, self.line, self.folder, self._log = process, line, folder, log
        self.environment = environment
        words = line.split()
        self.address = words[words.index("at") + 1].rstrip(";")
        self.kubeconfig = Path(words[words.index("--kubeconfig") + 1])
        context = words[words.index("--context") + 1] if "--context" in words else ""
        self.endpoint = Endpoint.of_kubeconfig(self.kubeconfig.read_text(), context)

    def request(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **headers: str
    ) -> Answer:
        return self.endpoint.request(method, path, body, media, **headers)

    def end(self, number: int = signal.SIGTERM) -> float:
        """Stop it by a signal; return how many seconds that took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(HANG_SECONDS)
        return time.monotonic() - began

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def rest_of_stdout(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def log(self) -> str:
        return self._log.read_text()

    def memory(self) -> int:
        """Current resident memory in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def environment(home: Path) -> dict[str, str]:
    """Environment of a user with its own home, using the tested code if that is not the installed one."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "TMPDIR", "PYTHONPATH") or name.startswith("COVERAGE_")
    }
    overrides = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PYTHONDONTWRITEBYTECODE": "1"}
    return {**inherited, **overrides, **QUICK}


@contextlib.contextmanager
def sandbox(
    folder: Path, *flags: str, home: Path | None = None, program: Sequence[str] = (), bug: str = ""
) -> Iterator[Sandbox]:
    """Start a sandbox, wait until it is ready, and stop it afterwards. `program` replaces the command. A `bug` is
    Python code that breaks the server on purpose before it starts."""
    home = home or folder.parent
    log = record_log(home / f"{folder.name}.log")
    where = () if "--ephemeral" in flags else ("--data-dir", str(folder))
    words = ("sandbox", "start", *where, *flags)
    with log.open("a") as errors:
        process: subprocess.Popen[str] | forked_commands.Started
        if program:
            process = subprocess.Popen(
                [*program, *words], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment(home),
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        else:
            process = forked_commands.start(words, env=environment(home), stderr=errors.fileno(), bug=bug)
    try:
        yield Sandbox(process, _ready_line(process, log), folder, log, environment(home))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _ready_line(process: subprocess.Popen[str] | forked_commands.Started, log: Path) -> str:
    assert process.stdout is not None
    output = select.poll()  # there may be more descriptors than select supports
    output.register(process.stdout, select.POLLIN)
    line = process.stdout.readline() if output.poll(HANG_SECONDS * 1000) else ""
    if not line:
        process.kill()
        raise AssertionError(f"the sandbox did not become ready: {log.read_text()[-2000:]}")
    return line


def argosy(*arguments: object, home: Path, timeout: float = HANG_SECONDS, input: str | None = None) -> Finished:
    """Run a command in a new process, forked after the imports."""
    forked_commands.wait_until_ready()
    began = time.monotonic()
    done = forked_commands.run(arguments, env=environment(home), input=input, timeout=timeout)
    return Finished(*done, time.monotonic() - began)


def kubectl(kubeconfig: Path, *arguments: object, input: str | None = None, timeout: float = HANG_SECONDS) -> Finished:
    home = kubeconfig.parent.with_name(f"{kubeconfig.parent.name}-kubectl-home")
    home.mkdir(exist_ok=True)
    command = [str(KUBECTL), "--kubeconfig", str(kubeconfig), *map(str, arguments)]
    return _finished(command, environment(home), timeout, input)


def until_served(kubeconfig: Path, *definitions: str) -> None:
    """Wait until kinds are served. kubectl fails at once on a CRD without conditions."""
    waited = ("wait", "--for=condition=Established", f"--timeout={HANG_SECONDS:g}s", "crd", *definitions)
    wait_until(lambda: kubectl(kubeconfig, *waited).code == 0, f"{definitions} are served")


def _finished(command: list[str], env: Mapping[str, str], timeout: float, stdin: str | None) -> Finished:
    began = time.monotonic()
    source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    done = subprocess.run(  # type: ignore[call-overload]
        command, capture_output=True, text=True, env=env, timeout=timeout, check=False, **source
    )
    return Finished(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


class Served(NamedTuple):
    """A control plane on a socket in this process."""

    plane: ControlPlane
    endpoint: Endpoint
    authority: Path


@contextlib.asynccontextmanager
async def served(folder: Path, *, durable: bool = False, rbac: bool = False) -> AsyncIterator[Served]:
    """Serve a control plane, in memory unless `durable`; starts much faster than a process."""
    folder.mkdir(exist_ok=True)
    certificate_files = ensure_certificates(folder / "tls")
    files = ControlPlaneFiles(
        folder / "argosy.db", folder / "secret.key", folder / "token.key", certificate_files.authority
    )
    async with (
        ControlPlane.open(files if durable else None, rbac=rbac, admin_token=TOKEN) as plane,
        serve_https(plane, certificate_files) as address,
    ):
        yield Served(
            plane, Endpoint(address, certificate_files.authority.read_text(), TOKEN), certificate_files.authority
        )


def configmap(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": dict(data or {})}
