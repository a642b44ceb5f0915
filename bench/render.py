"""How fast overlays become manifests, beside `kubectl kustomize` 1.32, in one run; exits 1 where a limit is not kept.

The input is made here: one base, overlays with and without a strategic patch, in one repository.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from argosy.gitops.application import Application, Source
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.render import render
from argosy.gitops.source.folder_tree import FolderTree
from argosy.kube.objects import read_yaml_documents

BIN = Path(sys.executable).parent
KUBECTL = BIN.parent / "kubectl-1.32" / "kubectl"
ARGOSY = BIN / "argosy"
# Compiled modules may be written, as an installed package has them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHONDONT")}

OVERLAYS = 1_000
SAMPLE = 40  # overlays that kubectl renders; the time of 1,000 is scaled from them
COLD_RUNS = 20
WARM_LEAST, BATCH_LEAST = 15.0, 20.0
COLD_MOST = {"with a strategic patch": 1.0, "without one": 2.5}

BASE = {
    "kustomization.yaml": "resources: [deployment.yaml, service.yaml, account.yaml, config.yaml]\n",
    "deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: model, labels: {app: model}}
spec:
  replicas: 1
  selector: {matchLabels: {app: model}}
  template:
    metadata: {labels: {app: model}}
    spec:
      serviceAccountName: model
      containers:
        - name: server
          image: registry.example/model:v1
          args: [--port, "8080"]
          env: [{name: LEVEL, value: info}, {name: WORKERS, value: "2"}]
          envFrom: [{configMapRef: {name: settings}}]
          ports: [{containerPort: 8080}]
          resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m, memory: 256Mi}}
          volumeMounts: [{name: cache, mountPath: /cache}]
      volumes: [{name: cache, emptyDir: {}}]
""",
    "service.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: model}
spec: {selector: {app: model}, ports: [{name: http, port: 80, targetPort: 8080}]}
""",
    "account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: model}\n",
    "config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: '1', b: two}\n",
}
PLAIN = """\
resources: [../../base]
namePrefix: {name}-
namespace: {name}
labels: [{{pairs: {{tier: {name}}}, includeSelectors: true}}]
images: [{{name: registry.example/model, newTag: v2}}]
replicas: [{{name: model, count: 3}}]
"""
PATCHED = PLAIN + "patches: [{{path: patch.yaml}}]\n"
PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: model}
spec:
  template:
    spec:
      containers:
        - name: server
          env: [{name: LEVEL, value: debug}]
          resources: {limits: {memory: 2Gi}}
"""


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def repository(root: Path) -> list[Path]:
    """Half of the overlays have a strategic patch; the first has one, the second has none."""
    (root / ".git").mkdir()
    write(root / "base", BASE)
    for number in range(OVERLAYS):
        name = f"o{number}"
        own = {"kustomization.yaml": (PLAIN if number % 2 else PATCHED).format(name=name)}
        write(root / "overlays" / name, own if number % 2 else {**own, "patch.yaml": PATCH})
    return [root / "overlays" / f"o{number}" for number in range(OVERLAYS)]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def command(*words: object) -> bytes:
    done = subprocess.run([str(word) for word in words], env=ENVIRONMENT, capture_output=True, check=True)
    return done.stdout


def kubectl(overlay: Path) -> bytes:
    return command(KUBECTL, "kustomize", overlay)


def report(title: str, ours: float, kubectl_seconds: float, ratio: float, limit: str, *, kept: bool) -> bool:
    times = f"argosy {ours * 1e3:10.1f} ms   kubectl {kubectl_seconds * 1e3:10.1f} ms"
    print(f"{title:36} {times}   ratio {ratio:7.2f}   limit {limit}{'' if kept else '   OVER'}")
    return kept


def warm(root: Path, overlay: Path) -> bool:
    app, source = Application(name="bench"), Source(path=str(overlay.relative_to(root)))

    def ours() -> list[object]:
        return list(render(Checkout(FolderTree(root), ""), app, source).manifests)

    assert ours() == read_yaml_documents(kubectl(overlay)), "the manifests differ"
    our_seconds, kubectl_seconds = [], []
    for _ in range(COLD_RUNS):
        our_seconds += [seconds(ours) for _ in range(5)]
        kubectl_seconds.append(seconds(lambda: kubectl(overlay)))
    ratio = statistics.median(kubectl_seconds) / statistics.median(our_seconds)
    is_met = ratio >= WARM_LEAST
    times = statistics.median(our_seconds), statistics.median(kubectl_seconds)
    return report("warm, with a strategic patch", *times, ratio, f"≥ {WARM_LEAST:.0f} times faster", kept=is_met)


def batch(root: Path, overlays: list[Path]) -> bool:
    lines: list[bytes] = []
    start = time.perf_counter()
    lines += command(ARGOSY, "render", *overlays, "-o", "jsonl").splitlines()
    ours = time.perf_counter() - start
    assert len(lines) == OVERLAYS and all(json.loads(line)["ok"] for line in lines), "not all were rendered"
    sample = overlays[:: OVERLAYS // SAMPLE + 1 | 1][:SAMPLE]  # an odd stride: with and without a patch in turn
    kubectl_seconds = (
        sum(seconds(lambda overlay=sample_overlay: kubectl(overlay)) for sample_overlay in sample)
        / len(sample)
        * OVERLAYS
    )
    ratio = kubectl_seconds / ours
    is_met = ratio >= BATCH_LEAST
    done = report(
        f"{OVERLAYS:,} overlays", ours, kubectl_seconds, ratio, f"≥ {BATCH_LEAST:.0f} times faster", kept=is_met
    )
    print(f"{'':36} (kubectl: the time of {len(sample)} overlays, scaled to {OVERLAYS:,})")
    return done


def cold(overlay: Path, case: str) -> bool:
    """Medians of runs in turn: what else the machine does meets both alike."""
    our_seconds, kubectl_seconds = [], []
    command(ARGOSY, "render", overlay)
    for _ in range(COLD_RUNS):
        our_seconds.append(seconds(lambda: command(ARGOSY, "render", overlay)))
        kubectl_seconds.append(seconds(lambda: kubectl(overlay)))
    times = statistics.median(our_seconds), statistics.median(kubectl_seconds)
    ratio, most = times[0] / times[1], COLD_MOST[case]
    return report(f"the command, {case}", *times, ratio, f"≤ {most} times", kept=ratio <= most)


def main() -> int:
    if not KUBECTL.exists():
        print(f"skipped: there is no kubectl 1.32 in {KUBECTL.parent}; run make install")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        overlays = repository(root)
        results = [
            warm(root, overlays[0]),
            batch(root, overlays),
            cold(overlays[0], "with a strategic patch"),
            cold(overlays[1], "without one"),
        ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
