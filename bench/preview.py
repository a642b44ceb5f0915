"""How long people wait for `argosy preview` and `argosy check` with 50 applications, as they type it.

Each application is an overlay with a base of its own (a model and what belongs to it), in one repository; one overlay
is changed. A share is what a run takes of its limit: 1.0 is the limit. Exits 1 where one is over.

Run: python bench/preview.py [how many applications]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ARGOSY = Path(sys.executable).parent / "argosy"
# Compiled modules may be written, as an installed package has them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHONDONT")}
RUNS = 7
PREVIEW_MOST, CHECK_MOST = 2.0, 10.0  # seconds

BASE = {
    "kustomization.yaml": "resources: [model.yaml, service.yaml, deployment.yaml, config.yaml]\n",
    "model.yaml": """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: model, annotations: {argocd.argoproj.io/sync-wave: "1"}}
spec:
  predictor:
    minReplicas: 1
    maxReplicas: 2
    model:
      modelFormat: {name: sklearn}
      storageUri: s3://models/fraud/v1
      resources: {limits: {cpu: "2", memory: 2Gi}, requests: {cpu: "1", memory: 1Gi}}
""",
    "service.yaml": """\
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: front}, ports: [{name: http, port: 80, targetPort: 8080}]}
""",
    "deployment.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, labels: {app: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      containers:
        - name: server
          image: registry.example/front:v1
          env: [{name: LEVEL, value: info}]
          ports: [{containerPort: 8080}]
          resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 100m, memory: 256Mi}}
""",
    "config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: '1', b: two}\n",
}
OVERLAY = """\
resources: [../../bases/{name}]
namePrefix: {name}-
namespace: {name}
images: [{{name: registry.example/front, newTag: v2}}]
replicas: [{{name: front, count: 3}}]
patches:
  - target: {{kind: InferenceService, name: model}}
    patch: |-
      - {{op: replace, path: /spec/predictor/model/resources/requests/cpu, value: 500m}}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: https://git.example.com/acme/models.git, path: overlays/{name}, targetRevision: main}}
  destination: {{server: https://kubernetes.default.svc, namespace: {name}}}
  syncPolicy: {{syncOptions: [CreateNamespace=true]}}
"""


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


def repository(root: Path, count: int) -> None:
    for number in range(count):
        name = f"team-{number}"
        write(root / "bases" / name, BASE)
        write(root / "overlays" / name, {"kustomization.yaml": OVERLAY.format(name=name)})
        write(root / "applications", {f"{name}.yaml": APPLICATION.format(name=name)})
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Begin")
    changed = root / "overlays" / "team-7" / "kustomization.yaml"
    changed.write_text(changed.read_text().replace("500m", "1500m"))


def seconds(root: Path, *words: str) -> tuple[float, str]:
    """Wall time of a fresh process, and what it printed."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        done = subprocess.run([ARGOSY, *words], cwd=root, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        times.append(time.perf_counter() - start)
        assert done.returncode in (0, 1), done.stderr
    return statistics.median(times), done.stdout + done.stderr


def report(title: str, took: float, most: float) -> bool:
    share = took / most
    print(f"{title:44} {took * 1e3:8.0f} ms   share {share:5.2f} of {most:.0f} s{'' if share <= 1 else '   OVER'}")
    return share <= 1


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        repository(root, count)
        took, output = seconds(root, "preview")
        assert "1 app changes" in output and f"1 of {count} rendered" in output, output
        verdicts = [report(f"preview, one overlay of {count} changed", took, PREVIEW_MOST)]
        git(root, "checkout", "-q", ".")
        took, output = seconds(root, "preview", "HEAD")
        assert "nothing changes" in output, output
        verdicts.append(report(f"preview, nothing of {count} changed", took, PREVIEW_MOST))
        took, output = seconds(root, "check")
        assert f"{count} Applications" in output, output
        verdicts.append(report(f"check of {count} applications", took, CHECK_MOST))
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
