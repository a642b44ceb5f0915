"""How fast manifests are read and written, as ratios to PyYAML's C loader and dumper in the same process.

Run: `python bench/manifests.py [rounds]`. The documents are made here: 250 Deployments and 250 ConfigMaps.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson

from argosy.kube.objects import dump_yaml_documents, read_yaml_documents

pyyaml = importlib.import_module("yaml")


def _deployment(number: int) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": f"web-{number}", "app.kubernetes.io/part-of": "shop", "tier": "front"}
    env = [{"name": f"SETTING_{index}", "value": f"value of setting {index} in {number}"} for index in range(6)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3}
    container = {
        "name": "main", "image": f"registry.example/shop/web:{number}.4.1", "env": env, "livenessProbe": probe,
        "args": ["--listen=:8080", "--verbose", "yes", f"--shard={number}"], "ports": [{"containerPort": 8080}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    }  # fmt: skip
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "serviceAccountName": "web"}}
    spec = {"replicas": number % 5, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"web-{number}"}, "spec": spec}


def _config(number: int) -> dict[str, Any]:
    script = "".join(f"echo step {index} of {number}\n" for index in range(20))
    data = {"run.sh": "#!/bin/sh\n" + script, "mode": "on", "size": "12", **{f"key{i}": f"word {i}" for i in range(20)}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"config-{number}"}, "data": data}


def _best(call: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """CPU seconds of both, taken in turns."""
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        for index, run in enumerate((call, other)):
            start = time.process_time()
            run()
            best[index] = min(best[index], time.process_time() - start)
    return best[0], best[1]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    manifests = [_deployment(n) if n % 2 else _config(n) for n in range(500)]
    text = dump_yaml_documents(manifests)
    print(f"{len(manifests)} documents, {len(text) // 1000} KB")
    ours, pyyaml_load = _best(
        lambda: read_yaml_documents(text), lambda: list(pyyaml.load_all(text, Loader=pyyaml.CSafeLoader)), rounds
    )
    print(f"load  {ours * 1e3:6.1f} ms, CSafeLoader {pyyaml_load * 1e3:6.1f} ms: {pyyaml_load / ours:.1f}x")
    ours, pyyaml_dump = _best(
        lambda: dump_yaml_documents(manifests), lambda: pyyaml.dump_all(manifests, Dumper=pyyaml.CSafeDumper), rounds
    )
    print(f"dump  {ours * 1e3:6.1f} ms, CSafeDumper {pyyaml_dump * 1e3:6.1f} ms: {pyyaml_dump / ours:.1f}x")
    data = orjson.dumps(manifests)
    print(f"(orjson reads the same in {_best(lambda: orjson.loads(data), lambda: None, rounds)[0] * 1e3:.1f} ms)")


if __name__ == "__main__":
    main()
