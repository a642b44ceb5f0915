"""One cluster with an operator, the real one or the simulated one: installs ArgoCD resources, edits, reads facts.

In: a running sandbox, ArgoCD specs, edits. Out: facts, when the operator has nothing left to do. Never: knows which
operator it is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from support.argocd_operator.facts import (
    ARGOCD_PATH,
    COMPARED_KINDS,
    NAMED_KINDS,
    TURN_ANNOTATION,
    Facts,
    encode_changes,
    list_facts,
)
from support.clusters import Sandbox
from support.deadlines import HANG_SECONDS, wait_until
from support.paths import DATA

ALL_KINDS: Final = {"ArgoCD": ARGOCD_PATH, **COMPARED_KINDS, **NAMED_KINDS}
NAME: Final = "cd"  # of every ArgoCD resource
BARRIER: Final = "barrier"  # the namespace of an ArgoCD that only shows that the operator has come so far
EDITED: Final = "edited"  # the namespace of the installation that is edited
OWNER: Final = "argocd-gpg-keys-cm"
MERGE_PATCH: Final = "application/merge-patch+json"
QUIET_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 10 * HANG_SECONDS  # it has one worker for all installations
_FOLDER: Final = DATA / "argocd-operator"
RECORDED: Final = _FOLDER / "recorded.json"


@dataclass(frozen=True)
class Edit:
    """A change by hand: of an object that the operator made, or of the ArgoCD resource itself."""

    name: str
    kind: str
    object_name: str
    patch: Mapping[str, Any] | None  # None deletes the object

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.object_name}"


def load_shapes() -> dict[str, dict[str, Any]]:
    shapes: dict[str, dict[str, Any]] = yaml.safe_load((_FOLDER / "shapes.yaml").read_text())
    return shapes


def load_edits() -> tuple[dict[str, Any], list[Edit]]:
    """Return the spec of the edited installation, and the edits."""
    loaded = yaml.safe_load((_FOLDER / "edits.yaml").read_text())
    edits = [Edit(name, *text["of"].split(), text.get("patch")) for name, text in loaded["edits"].items()]
    return loaded["spec"], edits


def name_namespace(shape: str) -> str:
    return f"shape-{shape}"


def hide_namespace(facts: Facts, namespace: str) -> Facts:
    """Replace the namespace, which differs from shape to shape."""
    hidden: Facts = json.loads(json.dumps(facts).replace(namespace, "<namespace>"))
    return hidden


@dataclass
class Site:
    name: str
    server: Sandbox
    has_no_kubelet: bool = False
    _turn: int = field(default=0, init=False)

    def install(self, namespace: str, spec: Mapping[str, Any]) -> None:
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        manifest = {
            "apiVersion": "argoproj.io/v1beta1",
            "kind": "ArgoCD",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": spec,
        }
        self._send("POST", _find_path("ArgoCD", namespace), manifest)

    def edit(self, namespace: str, edit: Edit) -> None:
        path = f"{_find_path(edit.kind, namespace)}/{edit.object_name}"
        if self.server.request("GET", path).code == 404:
            return  # this operator does not make the object
        if edit.patch is None:
            self._send("DELETE", path)
            return
        owner = self._send("GET", f"{_find_path('ConfigMap', namespace)}/{OWNER}")
        patch = json.dumps(edit.patch).replace("<uid>", owner["metadata"]["uid"])
        self._send("PATCH", path, json.loads(patch))

    def undo(self, namespace: str, edit: Edit) -> None:
        """Let the operator make the edited object again. Changes of the ArgoCD resource stay."""
        if edit.kind == "ArgoCD":
            return
        path = f"{_find_path(edit.kind, namespace)}/{edit.object_name}"
        self.server.request("DELETE", path)
        # The operator does not hear of an object that lost its owner.
        self._turn += 1
        patch = {"metadata": {"annotations": {TURN_ANNOTATION: str(self._turn)}}}
        self._send("PATCH", f"{_find_path('ArgoCD', namespace)}/{NAME}", patch)

    def read_effects(self, namespace: str, edits: Iterable[Edit]) -> Iterator[tuple[str, Facts]]:
        """Make the edits one after the other, and yield what is different afterwards."""
        [before] = self.read_settled([namespace]).values()
        for edit in edits:
            self.edit(namespace, edit)
            self._wait_for_operator()
            after = self._list_facts([namespace])[namespace]
            yield edit.name, encode_changes(before, after)
            if edit.kind == "ArgoCD":
                before = after
            else:
                self.undo(namespace, edit)
                self._wait_for_operator()

    def read_settled(self, namespaces: Sequence[str]) -> dict[str, Facts]:
        """Return the facts of each namespace when they no longer change and the operator has handled all events."""
        before: dict[str, Facts] = {}
        changed_at = time.monotonic()
        until = changed_at + SETTLE_SECONDS
        while time.monotonic() < until:
            self._wait_for_operator()
            if self.has_no_kubelet:
                self._run_workloads()
            facts = self._list_facts(namespaces)
            if facts != before:
                before, changed_at = facts, time.monotonic()
            elif time.monotonic() - changed_at >= QUIET_SECONDS:
                return facts
        raise AssertionError(f"{self.name}: the objects change without end")

    def _list_facts(self, namespaces: Sequence[str]) -> dict[str, Facts]:
        objects: dict[str, dict[str, list[Any]]] = {namespace: {} for namespace in namespaces}
        for kind, path in ALL_KINDS.items():
            for item in self._send("GET", _find_path(kind, namespaces[0]) if len(namespaces) == 1 else path)["items"]:
                if (namespace := item["metadata"]["namespace"]) in objects:
                    objects[namespace].setdefault(kind, []).append(item)
        return {namespace: hide_namespace(list_facts(kinds), namespace) for namespace, kinds in objects.items()}

    def _run_workloads(self) -> None:
        """Report workloads as ready and Routes as admitted, as kubelets and the router of OpenShift would."""
        for kind in ("Deployment", "StatefulSet"):
            for item in self._send("GET", ALL_KINDS[kind])["items"]:
                replicas = item["spec"].get("replicas", 1)
                if (item.get("status") or {}).get("readyReplicas", 0) != replicas:
                    self._patch_status(kind, item, {"replicas": replicas, "readyReplicas": replicas})
        for item in self._send("GET", ALL_KINDS["Route"])["items"]:
            if not item.get("status"):
                admitted = [{"type": "Admitted", "status": "True"}]
                self._patch_status("Route", item, {"ingress": [{"host": item["spec"]["host"], "conditions": admitted}]})

    def _patch_status(self, kind: str, item: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        path = f"{_find_path(kind, item['metadata']['namespace'])}/{item['metadata']['name']}/status"
        self._send("PATCH", path, {"status": status})

    def _wait_for_operator(self) -> None:
        """Wait until the operator has handled what was queued before: it has one queue, in order."""
        path = _find_path("ArgoCD", BARRIER)
        if self._turn == 0:
            self.install(BARRIER, {})
        for _ in range(2):  # the informers of two kinds may deliver in another order
            self._turn += 1
            turn = str(self._turn)
            self._send("PATCH", f"{path}/{NAME}", {"spec": {"extraConfig": {"turn": turn}}})
            wait_until(
                lambda turn=turn: self._read_turn() == turn,
                f"{self.name} reconciles {BARRIER}/{NAME}",
                seconds=SETTLE_SECONDS,
            )

    def _read_turn(self) -> str:
        answer = self.server.request("GET", f"{_find_path('ConfigMap', BARRIER)}/argocd-cm")
        return str((answer.json().get("data") or {}).get("turn", ""))

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        media = MERGE_PATCH if method == "PATCH" else "application/json"
        answer = self.server.request(method, path, body, media)
        assert answer.code in (200, 201, 202), f"{self.name}: {method} {path}: {answer.body!r}"
        return answer.json()


def _find_path(kind: str, namespace: str) -> str:
    prefix, _, plural = ALL_KINDS[kind].rpartition("/")
    return f"{prefix}/namespaces/{namespace}/{plural}"
