"""What delivering costs with argosy and with the real Argo CD, in one run on this machine.

The same Applications from one local repository, each program on a fresh sandbox: argosy, Argo CD with its default
settings, and Argo CD tuned as its documentation advises for many Applications. Wall time is from the first Application
that is created to the last one that is Synced; CPU time and memory are those of all processes of the program, without
the API server; requests are those that the API server answered, without the bench's own. A push is followed by a
refresh of the Application, which is what a webhook requests. With --polled, a push without it is measured, too: Argo
CD polls every two to three minutes, argosy sees pushes to a repository on the same machine.
Limits: argosy takes at most half of the wall time, the CPU time and the memory of the tuned Argo CD.

Run: python bench/beside_argocd.py [--apps 200,1000] [--objects 1,20] [--programs argosy,default,tuned] [--polled]
It needs what `make argocd` builds. Without that it says so, and measures nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from at_scale.world import APPS, CALLERS, CONTROL, MERGE, REFRESH, Onlooker, application, commit
from side_by_side.processes import resident_bytes, total_cpu_seconds

from support.argocd.pair import Side, prepare_side
from support.argocd.programs import find_installation, find_missing_program, run_argocd
from support.clusters import ARGOSY, Sandbox, environment, sandbox

PROGRAMS: Final = ("argosy", "default", "tuned")
# Argo CD's documentation of high availability: processors for 1,000 Applications, and no limits of its own on requests.
TUNED: Final = {
    "ARGOCD_APPLICATION_CONTROLLER_STATUS_PROCESSORS": "50",
    "ARGOCD_APPLICATION_CONTROLLER_OPERATION_PROCESSORS": "25",
    "ARGOCD_APPLICATION_CONTROLLER_KUBECTL_PARALLELISM_LIMIT": "50",
    "ARGOCD_K8S_CLIENT_QPS": "500",
    "ARGOCD_K8S_CLIENT_BURST": "1000",
}
MAX_RATIO: Final = 0.5
PUSHES: Final = 5
SYNC_SECONDS, POLL_SECONDS = 3600.0, 420.0  # until a program that does not finish ends the bench
MIB: Final = 1024.0 * 1024.0


@dataclass
class Figures:
    wall: float
    cpu: float
    peak: float
    requests: float
    push: float  # median
    polled: float | None = None


@dataclass
class Delivery:
    """One cluster with one program that delivers, and its costs."""

    server: Sandbox
    pids: Sequence[int]
    peak: float = field(default=0.0)

    def read_costs(self) -> tuple[float, float]:
        """CPU seconds of the program, and answered requests."""
        return total_cpu_seconds(self.pids), self._count_requests()

    def _count_requests(self) -> float:
        text = self.server.request("GET", "/metrics").body.decode()
        lines = [line for line in text.splitlines() if line.startswith("apiserver_request_total{")]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def wait_until(self, condition: Callable[[], bool], description: str, seconds: float) -> float:
        """Sample the memory until the condition is true; return the seconds that it took."""
        began = time.monotonic()
        while not condition():
            assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s: {description}"
            self.peak = max(self.peak, resident_bytes(self.pids))
            time.sleep(0.1)
        return time.monotonic() - began


def build_files(apps: int, objects: int, note: str = "first") -> dict[str, str]:
    return {
        f"apps/app-{number:05}/{index}.yaml": build_config_map(f"app-{number:05}-{index}", note)
        for number in range(apps)
        for index in range(objects)
    }


def build_config_map(name: str, note: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{mode: production, note: {note}}}\n"


def push(repository: Path, path: str, text: str) -> str:
    """Commit one file to main, and return the commit."""
    git = ["git", f"--git-dir={repository}"]
    data = f"commit refs/heads/main\ncommitter bench <bench@example.com> {time.time():.0f} +0000\ndata 1\nc\n"
    data += f"from refs/heads/main^0\nM 100644 inline {path}\ndata {len(text)}\n{text}\n"
    subprocess.run([*git, "fast-import", "--quiet"], input=data.encode(), check=True)
    return subprocess.run([*git, "rev-parse", "main"], capture_output=True, text=True, check=True).stdout.strip()


def declare(server: Sandbox, apps: int, repository: Path) -> None:
    def create(number: int) -> None:
        answer = server.request("POST", APPS, application(number, f"file://{repository}"))
        assert answer.code == 201, answer.body

    with ThreadPoolExecutor(CALLERS) as callers:
        for _ in callers.map(create, range(apps)):
            pass


def has_synced(server: Sandbox, name: str, revision: str) -> bool:
    status = server.request("GET", f"{APPS}/{name}").json().get("status") or {}
    sync, operation = status.get("sync") or {}, status.get("operationState") or {}
    is_over = operation.get("phase") == "Succeeded" and operation.get("syncResult", {}).get("revision") == revision
    return is_over and (sync.get("status"), sync.get("revision")) == ("Synced", revision)


def measure(delivery: Delivery, repository: Path, apps: int, *, polled: bool) -> Figures:
    server = delivery.server
    onlooker = Onlooker(server.endpoint)
    cpu, requests = delivery.read_costs()
    began = time.monotonic()
    declare(server, apps, repository)
    delivery.wait_until(lambda: len(onlooker.synced) == apps, "every Application is Synced", SYNC_SECONDS)
    wall = time.monotonic() - began
    cpu_after, requests_after = delivery.read_costs()
    pushes = sorted(measure_push(delivery, repository, apps * turn // PUSHES, turn) for turn in range(PUSHES))
    figures = Figures(
        wall, cpu_after - cpu, delivery.peak / MIB, requests_after - requests - apps, pushes[len(pushes) // 2]
    )
    if polled:
        figures.polled = measure_push(delivery, repository, apps - 1, PUSHES, refresh=False)
    return figures


def measure_push(delivery: Delivery, repository: Path, number: int, turn: int, *, refresh: bool = True) -> float:
    name = f"app-{number:05}"
    revision = push(repository, f"apps/{name}/0.yaml", build_config_map(f"{name}-0", f"push-{turn}"))
    began = time.monotonic()
    if refresh:
        patch = {"metadata": {"annotations": {REFRESH: "normal"}}}
        assert delivery.server.request("PATCH", f"{APPS}/{name}", patch, MERGE).code == 200
    description = f"{name} is Synced to {revision}"
    delivery.wait_until(lambda: has_synced(delivery.server, name, revision), description, POLL_SECONDS)
    return time.monotonic() - began


@contextlib.contextmanager
def run_program(program: str, server: Sandbox, folder: Path) -> Iterator[Sequence[int]]:
    """Yield the IDs of its processes."""
    if program != "argosy":
        settings: Mapping[str, str] = TUNED if program == "tuned" else {}
        with run_argocd(
            find_installation(), server.kubeconfig, folder / "argocd", CONTROL, settings=settings
        ) as argocd:
            yield [process.pid for process in argocd.processes.values()]
        return
    words = [str(ARGOSY), "controller", "--kubeconfig", str(server.kubeconfig), "-n", CONTROL, "--port", "0"]
    with open(folder / "controller.log", "wb") as log:
        process = subprocess.Popen(
            [*words, "--mirrors", str(folder / "mirrors")],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder, env=environment(folder),
        )  # fmt: skip
    try:
        yield [process.pid]
    finally:
        process.terminate()
        process.wait()


def run_once(program: str, apps: int, objects: int, *, polled: bool) -> Figures:
    with tempfile.TemporaryDirectory(prefix="beside-argocd-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        repository = folder / "everything.git"
        commit(repository, build_files(apps, objects))
        with sandbox(folder / "data", "--port", "0", program=[str(ARGOSY)]) as server:
            prepare_side(Side(program, server), find_installation())
            for namespace in {application(number, "")["spec"]["destination"]["namespace"] for number in range(apps)}:
                manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
                assert server.request("POST", "/api/v1/namespaces", manifest).code == 201
            with run_program(program, server, folder) as pids:
                return measure(Delivery(server, pids), repository, apps, polled=polled)


def print_table(rows: Mapping[str, Figures]) -> None:
    print(f"{'program':10}{'wall s':>10}{'CPU s':>10}{'peak MiB':>10}{'requests':>10}{'push s':>10}{'polled s':>10}")
    for program, row in rows.items():
        polled = f"{row.polled:.1f}" if row.polled is not None else "-"
        print(
            f"{program:10}{row.wall:10.1f}{row.cpu:10.1f}{row.peak:10.0f}{row.requests:10,.0f}"
            f"{row.push:10.2f}{polled:>10}",
            flush=True,
        )


def find_excess(rows: Mapping[str, Figures]) -> list[str]:
    """Print the ratios of argosy to each Argo CD; return the names of those over the limit."""
    over = []
    for peer in [name for name in rows if name != "argosy" and "argosy" in rows]:
        argosy, argocd = rows["argosy"], rows[peer]
        ratios = {
            "wall": argosy.wall / argocd.wall,
            "CPU": argosy.cpu / argocd.cpu,
            "memory": argosy.peak / argocd.peak,
            "requests": argosy.requests / argocd.requests,
            "push": argosy.push / argocd.push,
        }
        print(f"argosy to {peer}: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items()), flush=True)
        if peer == "tuned":
            over += [name for name in ("wall", "CPU", "memory") if ratios[name] > MAX_RATIO]
    return over


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare what delivering costs with argosy and with Argo CD.")
    parser.add_argument("--apps", default="200", help="numbers of Applications, separated by commas")
    parser.add_argument("--objects", default="1", help="numbers of objects of each, separated by commas")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="some of argosy, default and tuned")
    parser.add_argument("--polled", action="store_true", help="measure a push without a refresh, too")
    arguments = parser.parse_args()
    if message := find_missing_program():
        print(message)
        return 0
    over: list[str] = []
    for apps in map(int, arguments.apps.split(",")):
        for objects in map(int, arguments.objects.split(",")):
            print(f"\n{apps:,} Applications of {objects}; load average {os.getloadavg()[0]:.1f}", flush=True)
            rows = {}
            for program in arguments.programs.split(","):
                rows[program] = run_once(program, apps, objects, polled=arguments.polled)
            print_table(rows)
            over += find_excess(rows)
    if over:
        print(f"OVER the limit of {MAX_RATIO}: {', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
