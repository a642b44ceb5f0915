"""Builds a kustomization with argosy and with kubectl 1.32.

In: file contents by path. Out: manifests, or errors. Never: reports a difference if kubectl itself panics.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.gitops.render.kustomize import build
from argosy.kube.objects import YamlDialect, read_yaml_documents
from argosy.kube.objects.json_equality import is_equal_json
from support.deadlines import HANG_SECONDS
from support.file_trees import TextTree
from support.paths import VENV

KUBECTL = VENV / "kubectl-1.32" / "kubectl"


def ours(texts: dict[str, str]) -> Any:
    try:
        return build(TextTree(texts), "top")
    except UserError as error:
        return str(error)


def theirs(texts: dict[str, str], folder: Path) -> Any:
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    command = [str(KUBECTL), "kustomize", str(folder / "top")]
    done = subprocess.run(command, capture_output=True, timeout=HANG_SECONDS, env={"HOME": str(folder)}, check=False)
    if done.returncode:
        return None if b"panic:" in done.stderr else done.stderr.decode()[-300:]
    try:
        return [
            manifest
            for manifest in read_yaml_documents(done.stdout, dialect=YamlDialect.KUSTOMIZE)
            if manifest is not None
        ]
    except UserError:
        return None


def agree(own: Any, kubectls: Any) -> bool:
    if kubectls is None or (isinstance(own, str) and isinstance(kubectls, str)):
        return True
    return not isinstance(own, str) and not isinstance(kubectls, str) and is_equal_json(own, kubectls)
