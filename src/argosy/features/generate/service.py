"""Output of generated manifests. In: a wait definition. Out: the manifests as text, and a hint about RBAC rules.
Never: accesses a cluster or a file."""

from __future__ import annotations

import json
from collections.abc import Sequence

from argosy.features.generate.wait_for_image import ImageWait
from argosy.features.generate.wait_for_notebook import NotebookWait
from argosy.kube.objects import Manifest, dump, dump_all

__all__ = ["ImageWait", "NotebookWait", "rights_wanted", "written"]


def written(manifests: Sequence[Manifest], form: str) -> str:
    """Render YAML documents or one JSON List; `kubectl apply -f -` accepts both."""
    if form == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2) + "\n"
    return dump_all(manifests)


def rights_wanted(wait: ImageWait | NotebookWait, flag: str) -> str:
    """List the rules that a user's own service account needs; empty if RBAC is generated as well."""
    if wait.has_rights:
        return ""
    rules = "".join(f"  {line}\n" for line in dump(wait.rules()).splitlines())
    which = f"service account {wait.account} in {wait.namespace}"
    return f"{which} needs these rules, in an earlier wave ({flag}):\n{rules}"
