"""Generates strategic merge and JSON patches. In: manifests. Out: texts. Never: touches the disk."""

from __future__ import annotations

import json
import random
from typing import Any

import yaml

from support.kustomize.trees import SPACES, Files, Manifests

POINTERS = [
    "/spec/replicas", "/metadata/labels/app", "/metadata/labels", "/metadata/annotations/a~1b", "/data/x", "/data",
    "/spec/template/spec/containers/0/image", "/spec/template/spec/containers/0", "/spec/template/spec/containers/-",
    "/spec/template/spec/containers/0/env/0/value", "/spec/template/spec/containers/0/env/-", "/spec/ports/0/port",
    "/spec/ports/1", "/metadata/name", "/metadata/namespace", "/spec/new", "/spec/new/deep", "/kind", "/spec",
    "/spec/template/spec/volumes", "/spec/template/spec/containers/5", "/spec/template/spec/containers/-1",
    "/subjects/0",
    "/spec/template/metadata/labels/k1", "/metadata/annotations", "/stringData/x", "/rules/0/verbs/0", "", "/", "spec",
]  # fmt: skip
JSON_VALUES: list[Any] = [1, "x", True, None, {"a": "b"}, [], {}, [1, "2"], "5", 1.5, "", {"name": "n", "value": None}]
MERGE_KEYS = ("name", "port", "containerPort", "protocol", "mountPath", "topologyKey", "whenUnsatisfiable")
"""A null in one of these makes kustomize lose elements by rules of its own; nobody writes that."""


def is_identity(pointer: str) -> bool:
    """True if the pointer refers to a field that identifies a manifest or a list element; it must stay a string."""
    parts = pointer.split("/")
    return parts[1:2] in (["metadata"], ["kind"]) or len(parts) < 3 or parts[-1] in MERGE_KEYS


class Patches(Manifests):
    """Generates manifests, and patches that match some of them."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.files: Files = {}
        self.made: list[dict[str, Any]] = []

    def patches(self, folder: str, fields: dict[str, Any], maybe: Any) -> None:
        if maybe(0.45):
            fields["patches"] = [self.patch(folder, at) for at in range(self.rng.randint(1, 3))]
        if maybe(0.1):
            texts = [yaml.safe_dump(self.strategic()) for _ in range(self.rng.randint(1, 2))]
            self.files[f"{folder}/psm.yaml"] = "---\n".join(texts)
            fields["patchesStrategicMerge"] = self.pick([["psm.yaml"], texts])
        if maybe(0.1) and self.made:
            manifest = self.pick(self.made)
            target = {"kind": manifest["kind"], "name": manifest["metadata"]["name"], "version": "v1"}
            target |= {"group": "apps"} if manifest["apiVersion"] == "apps/v1" else {}
            fields["patchesJson6902"] = [{"target": target, "patch": self.operations(manifest)}]

    def patch(self, folder: str, at: int) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        if self.chance(0.45):
            manifest = self.pick(self.made) if self.made else {"kind": "X", "metadata": {"name": "a"}}
            text = self.operations(manifest)
            entry["target"] = self.target(manifest)
        else:
            patch = self.strategic()
            text = yaml.safe_dump(patch)
            if self.chance(0.3):
                entry["target"] = self.target(patch)
            if self.chance(0.1):
                entry["options"] = {self.pick(["allowNameChange", "allowKindChange"]): True}
        if self.chance(0.3):
            entry["path"] = f"p{at}.yaml"
            self.files[f"{folder}/p{at}.yaml"] = text
        else:
            entry["patch"] = text
        return entry

    def target(self, chosen: dict[str, Any]) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        if self.chance(0.8):
            entry["kind"] = self.pick([chosen["kind"], chosen["kind"], "Deployment|ConfigMap", ".*Set"])
        if self.chance(0.5):
            entry["name"] = self.pick([chosen["metadata"]["name"], ".*", "a|b", "^web$", "p-.*"])
        if self.chance(0.1):
            entry["namespace"] = self.pick(SPACES)
        if self.chance(0.1):
            entry["version"] = "v1"
        if self.chance(0.1):
            entry["labelSelector"] = self.pick(["k1=v1", "app", "!app", "app in (v1, v2)", "team!=v2"])
        if self.chance(0.05):
            entry["annotationSelector"] = "k1"
        return entry or {"kind": chosen["kind"]}

    def operations(self, chosen: dict[str, Any]) -> str:
        operations = []
        for _ in range(self.rng.randint(1, 2)):
            pointers = POINTERS if self.chance(0.3) else self.pointers(chosen)
            pointers = [pointer for pointer in pointers if not is_identity(pointer)] or ["/x"]
            operation = {"op": self.pick(["replace", "add", "add", "remove", "test", "copy", "move", "replace"]),
                    "path": self.pick(pointers)}  # fmt: skip
            if operation["op"] in ("copy", "move"):
                operation["from"] = self.pick(pointers)
            elif operation["op"] != "remove" and self.chance(0.15):
                path = self.pick(["/metadata/name", "/metadata/labels/app", "/metadata/annotations/a~1b"])
                operation |= {"path": path, "value": self.pick(["renamed", "other"])}
            elif operation["op"] != "remove":
                operation["value"] = self.pick(JSON_VALUES)
            operations.append(operation)
        return json.dumps(operations) if self.chance(0.5) else yaml.safe_dump(operations)

    def pointers(self, node: Any, lead: str = "") -> list[str]:
        """Return pointers to existing fields, and to some missing ones."""
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        pointers = (
            [f"{lead}/new"]
            if isinstance(node, dict)
            else [f"{lead}/-", f"{lead}/{len(node)}"]
            if isinstance(node, list)
            else []
        )
        for key, child in pairs:
            pointer = f"{lead}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if pointer not in ("/apiVersion", "/kind", "/metadata"):
                pointers.append(pointer)
            pointers += self.pointers(child, pointer)
        return pointers or ["/x"]

    def strategic(self) -> dict[str, Any]:
        if self.made and self.chance(0.9):
            manifest = self.pick(self.made)
            patch = self.manifest(manifest["kind"], manifest["metadata"]["name"])
            patch["metadata"].pop("namespace", None)
            if space := manifest["metadata"].get("namespace"):
                patch["metadata"]["namespace"] = space
        else:
            patch = self.manifest()
        if self.chance(0.5):
            self.disturb(patch)
        if self.chance(0.04):
            patch["$patch"] = self.pick(["delete", "replace", "merge"])
        return patch

    def disturb(self, node: Any, top: bool = True) -> None:
        """Insert directives and nulls into a patch."""
        if isinstance(node, dict):
            for key in list(node):
                if top and key in ("apiVersion", "kind", "metadata"):
                    continue
                if self.chance(0.06) and key not in MERGE_KEYS:
                    node[key] = None
                else:
                    self.disturb(node[key], False)
            if not top and self.chance(0.06):
                node["$patch"] = self.pick(["delete", "replace", "merge"])
            if not top and self.chance(0.02):
                node["$retainKeys"] = list(node)
        elif isinstance(node, list):
            for child in node:
                self.disturb(child, False)
            if self.chance(0.06):
                node.append({"$patch": self.pick(["replace", "delete", "merge"])})
