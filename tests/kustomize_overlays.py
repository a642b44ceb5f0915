"""Kustomizations with all their fields. In: a random source. Out: a tree's files. Never: one that needs the network."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import yaml
from kustomize_trees import GVKS, IMAGES, KEYS, NAMES, SPACES, VALUES, Files, Manifests, odd_manifest

PATHS = [
    "metadata.name", "metadata.namespace", "spec.replicas", "data.x", "data.z\\.conf", "metadata.labels.app",
    "spec.template.spec.containers.0.image", "spec.template.spec.containers.[name=c].image", "spec.ports.0.port",
    "spec.template.spec.containers.*.image", "spec.template.spec.containers.[name=c].env.[name=A].value",
    "metadata.annotations.[app.kubernetes.io/name]", "spec.template.metadata.labels", "spec.selector.matchLabels.k1",
    "metadata.annotations.k1", "metadata.annotations.new", "spec.new.deep", "data.new", "spec.list.0", "spec.list.-",
    "spec.template.spec.volumes.[name=v].configMap.name", "webhooks.*.clientConfig.service.name", "spec.rules.0.host",
    "metadata.labels.app\\.kubernetes\\.io/name", "subjects.[kind=ServiceAccount].namespace", "spec.containers.1",
]  # fmt: skip
POINTERS = [
    "/spec/replicas", "/metadata/labels/app", "/metadata/labels", "/metadata/annotations/a~1b", "/data/x", "/data",
    "/spec/template/spec/containers/0/image", "/spec/template/spec/containers/0", "/spec/template/spec/containers/-",
    "/spec/template/spec/containers/0/env/0/value", "/spec/template/spec/containers/0/env/-", "/spec/ports/0/port",
    "/spec/ports/1", "/metadata/name", "/metadata/namespace", "/spec/new", "/spec/new/deep", "/kind", "/spec",
    "/spec/template/spec/volumes", "/spec/template/spec/containers/5", "/spec/template/spec/containers/-1", "/subjects/0",
    "/spec/template/metadata/labels/k1", "/metadata/annotations", "/stringData/x", "/rules/0/verbs/0", "", "/", "spec",
]  # fmt: skip
Accepts = Callable[[Files], bool]
FRAME = ("resources", "bases", "components", "apiVersion", "kind")
WRONG = 0.02
JSON_VALUES: list[Any] = [1, "x", True, None, {"a": "b"}, [], {}, [1, "2"], "5", 1.5, "", {"name": "n", "value": None}]
SPECS: list[dict[str, Any]] = [
    {"path": "metadata/labels", "create": True}, {"path": "spec/template/metadata/labels", "create": True},
    {"path": "metadata/annotations", "create": True}, {"path": "spec/selector", "create": True, "kind": "Service"},
    {"path": "spec/foo/bar", "create": True}, {"path": "spec/foo", "kind": "Deployment", "group": "apps"},
    {"path": "metadata/name"}, {"path": "metadata/namespace", "create": True}, {"path": "spec/replicas", "create": True},
    {"path": "spec/template/spec/containers[]/image"}, {"path": "spec/source/path", "kind": "Application"},
]  # fmt: skip


class Overlays(Manifests):
    """A tree: bases, overlays on them, components, and one folder to build."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.files: Files = {}
        self.made: list[dict[str, Any]] = []

    def tree(self, accepts: Accepts) -> Files:
        """Files of a tree whose folder `top` is to be built; most of what would not be accepted is left out."""
        self.draft()
        fields = {file: self.files[file][0] for file in self.files if "ustomization" in file}
        extras = [(file, name, value) for file in fields for name, value in fields[file].items()
                  if name not in FRAME and value != {"component": file.split("/")[0]}]  # fmt: skip
        for file, name, _ in extras:
            del fields[file][name]
        for file, name, value in extras:
            for part in value if isinstance(value, list) else [value]:
                self.extend(fields[file], name, [part] if isinstance(value, list) else part, accepts)
        return self.files

    def extend(self, fields: dict[str, Any], name: str, value: Any, accepts: Accepts) -> None:
        before = fields.get(name)
        fields[name] = [*before, *value] if isinstance(before, list) else value
        if not accepts(self.files) and not self.chance(WRONG):
            fields.pop(name)
            if before is not None:
                fields[name] = before

    def draft(self) -> None:
        bases = ["base"] if self.chance(0.7) else ["base", "other"]
        for base in bases:
            self.base(base)
        above = bases
        for depth in range(self.rng.randint(0, 2)):
            folder = f"mid{depth}"
            self.overlay(folder, [f"../{each}" for each in above])
            above = [folder, *(self.some(bases, 1) if self.chance(0.1) else [])]
        self.overlay("top", [f"../{each}" for each in above])

    def fresh(self, most: int) -> list[Any]:
        """Documents, seldom of an id that is there already."""
        found: list[Any] = []
        for each in self.documents(most):
            if isinstance(each, dict) and (metadata := each.get("metadata")):
                known = [(old["kind"], old["metadata"]["name"]) for old in self.made]
                if (each["kind"], metadata["name"]) in known and not self.chance(0.03):
                    continue
                self.made.append(each)
            found.append(each)
        return found or [self.manifest("ConfigMap", f"spare{len(self.files)}")]

    def base(self, folder: str) -> None:
        names = []
        for at in range(self.rng.randint(1, 2)):
            names.append(f"r{at}.yaml")
            self.files[f"{folder}/r{at}.yaml"] = self.fresh(4)
        if self.chance(0.15):
            names.append("odd.yaml")
            self.files[f"{folder}/odd.yaml"] = odd_manifest(self.rng)
        fields: dict[str, Any] = {"resources": names}
        self.fill(folder, fields, 0.5)
        self.put(folder, fields)

    def overlay(self, folder: str, above: list[str]) -> None:
        fields: dict[str, Any] = {"bases" if self.chance(0.05) else "resources": above}
        if self.chance(0.2):
            self.files[f"{folder}/own.yaml"] = self.fresh(2)
            fields.setdefault("resources", []).append("own.yaml")
        if self.chance(0.25):
            fields["components"] = [f"../comp-{folder}"]
            self.component(f"comp-{folder}")
        self.fill(folder, fields, 1.0)
        if folder == "top":
            self.finish(fields)
        self.put(folder, fields)

    def component(self, folder: str) -> None:
        fields: dict[str, Any] = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"}
        if self.chance(0.3):
            self.files[f"{folder}/c.yaml"] = self.fresh(2)
            fields["resources"] = ["c.yaml"]
        self.fill(folder, fields, 0.6)
        fields.setdefault("commonAnnotations", {"component": folder})
        self.put(folder, fields)

    def put(self, folder: str, fields: dict[str, Any]) -> None:
        if self.chance(0.02):
            fields.update(self.pick([{"unknown": 1}, {"namePrefix": 5}, {"NAMEPREFIX": "up-"}, {"resources": "x"},
                {"kind": "Wrong"}, {"metadata": {"name": "k"}}, {"commonLabels": None}, {"patches": [{}]}, {"crds": []},
                {"resources": ["missing.yaml"]}, {"labels": [{}]}, {"images": [None]}, {"replicas": [{"name": "zz"}]}]))  # fmt: skip
        self.files[f"{folder}/{self.pick(['kustomization.yaml'] * 8 + ['kustomization.yml', 'Kustomization'])}"] = [fields]

    def finish(self, fields: dict[str, Any]) -> None:
        if self.chance(0.2):
            fields["sortOptions"] = self.pick([{"order": "fifo"}, {"order": "legacy"}, {"order": "fifo"},
                {"order": "legacy", "legacySortOptions": {"orderFirst": ["Deployment"], "orderLast": ["Secret"]}}])  # fmt: skip
        if self.chance(0.1):
            fields["buildMetadata"] = self.some(["originAnnotations", "managedByLabel", "transformerAnnotations"])

    def fill(self, folder: str, fields: dict[str, Any], much: float) -> None:
        def maybe(of: float) -> bool:
            return self.chance(of * much)

        if maybe(0.3):
            fields["namespace"] = self.pick(SPACES)
        if maybe(0.25):
            fields["namePrefix"] = self.pick(["p-", "q-"])
        if maybe(0.2):
            fields["nameSuffix"] = self.pick(["-s", "-t"])
        if maybe(0.2):
            fields["labels"] = [self.label() for _ in range(self.rng.randint(1, 2))]
        for name in ("commonLabels", "commonAnnotations"):
            if maybe(0.15):
                fields[name] = self.pairs()
        if maybe(0.2):
            fields["images"] = [self.image() for _ in range(self.rng.randint(1, 2))]
        if maybe(0.12) and (names := self.names("Deployment", "StatefulSet")):
            fields["replicas"] = [{"name": self.pick(names), "count": self.rng.randint(0, 5)}]
        self.generators(folder, fields, maybe)
        self.patches(folder, fields, maybe)
        if maybe(0.2):
            fields["replacements"] = [self.replacement() for _ in range(self.rng.randint(1, 2))]
        if maybe(0.12):
            fields["vars"] = [self.var(each) for each in self.some(["V1", "V2"])]
        if maybe(0.08):
            self.files[f"{folder}/config.yaml"] = [self.configuration()]
            fields["configurations"] = ["config.yaml"]
        if maybe(0.08):
            text = self.transformer()
            fields["transformers"] = [yaml.safe_dump(text)] if self.chance(0.5) else ["t.yaml"]
            self.files[f"{folder}/t.yaml"] = [text]

    def names(self, *kinds: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.made if each["kind"] in kinds]

    def label(self) -> dict[str, Any]:
        made: dict[str, Any] = {"pairs": self.pairs()}
        for option in ("includeSelectors", "includeTemplates"):
            if self.chance(0.3):
                made[option] = self.chance(0.8)
        if self.chance(0.2):
            made["fields"] = self.some(SPECS, 2)
        return made

    def image(self) -> dict[str, Any]:
        name = self.pick(IMAGES).split("@")[0]
        made: dict[str, Any] = {"name": self.pick([name, name.rpartition(":")[0] or name, "app", "reg.io.*"])}
        for field, pool in (("newName", ["new/app", "r:50/x"]), ("newTag", ["v2", "1.5"]), ("digest", ["sha256:def"])):
            if self.chance(0.4):
                made[field] = self.pick(pool)
        if self.chance(0.05):
            made["tagSuffix"] = "-x"
        return made

    def generators(self, folder: str, fields: dict[str, Any], maybe: Any) -> None:
        if maybe(0.15):
            fields["generatorOptions"] = self.options()
        for name in ("configMapGenerator", "secretGenerator"):
            if maybe(0.25):
                fields[name] = [self.generator(folder, name) for _ in range(self.rng.randint(1, 2))]

    def options(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for option in ("disableNameSuffixHash", "immutable"):
            if self.chance(0.3):
                made[option] = self.chance(0.7)
        for option in ("labels", "annotations"):
            if self.chance(0.3):
                made[option] = self.pairs()
        return made

    def generator(self, folder: str, name: str) -> dict[str, Any]:
        made: dict[str, Any] = {"name": self.pick([*NAMES, "gen", "gen2"])}
        if self.chance(0.5):
            made["literals"] = [f"{key}={self.pick(VALUES)}" for key in self.some(["x", "y", "l.conf"])]
        if self.chance(0.3):
            made["files"] = [self.pick(["f.txt", "key=f.txt", "bin=b.bin", "f.txt"])]
            self.files[f"{folder}/f.txt"] = self.pick(["hello\nworld\n", "<a&b>\u2028", "", "tail  \n\n", "a: 1\r\n"])
            self.files[f"{folder}/b.bin"] = "\ufffdbin" * self.rng.randint(1, 40)
        if self.chance(0.2):
            made[self.pick(["envs", "envs", "env"])] = ["e.env"]
            if "env" in made:
                made["env"] = "e.env"
            self.files[f"{folder}/e.env"] = self.pick(["A=1\nB=2\n", "# c\n\n  A=x=y\nB=\n", "A\nB= 2 \n", "\ufeffA='q'\r\n"])
        if self.chance(0.3):
            made["behavior"] = self.pick(["merge", "replace", "create", "merge"])
        if self.chance(0.3):
            made["options"] = self.options()
        if self.chance(0.15):
            made["namespace"] = self.pick(SPACES)
        if name == "secretGenerator" and self.chance(0.3):
            made["type"] = "kubernetes.io/tls"
        return made

    def patches(self, folder: str, fields: dict[str, Any], maybe: Any) -> None:
        if maybe(0.45):
            fields["patches"] = [self.patch(folder, at) for at in range(self.rng.randint(1, 3))]
        if maybe(0.1):
            texts = [yaml.safe_dump(self.strategic()) for _ in range(self.rng.randint(1, 2))]
            self.files[f"{folder}/psm.yaml"] = "---\n".join(texts)
            fields["patchesStrategicMerge"] = self.pick([["psm.yaml"], texts])
        if maybe(0.1) and self.made:
            chosen = self.pick(self.made)
            target = {"kind": chosen["kind"], "name": chosen["metadata"]["name"], "version": "v1"}
            target |= {"group": "apps"} if chosen["apiVersion"] == "apps/v1" else {}
            fields["patchesJson6902"] = [{"target": target, "patch": self.operations(chosen)}]

    def patch(self, folder: str, at: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.chance(0.45):
            chosen = self.pick(self.made) if self.made else {"kind": "X", "metadata": {"name": "a"}}
            text = self.operations(chosen)
            made["target"] = self.target(chosen)
        else:
            patch = self.strategic()
            text = yaml.safe_dump(patch)
            if self.chance(0.3):
                made["target"] = self.target(patch)
            if self.chance(0.1):
                made["options"] = {self.pick(["allowNameChange", "allowKindChange"]): True}
        if self.chance(0.3):
            made["path"] = f"p{at}.yaml"
            self.files[f"{folder}/p{at}.yaml"] = text
        else:
            made["patch"] = text
        return made

    def target(self, chosen: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.chance(0.8):
            made["kind"] = self.pick([chosen["kind"], chosen["kind"], "Deployment|ConfigMap", ".*Set"])
        if self.chance(0.5):
            made["name"] = self.pick([chosen["metadata"]["name"], ".*", "a|b", "^web$", "p-.*"])
        if self.chance(0.1):
            made["namespace"] = self.pick(SPACES)
        if self.chance(0.1):
            made["version"] = "v1"
        if self.chance(0.1):
            made["labelSelector"] = self.pick(["k1=v1", "app", "!app", "app in (v1, v2)", "team!=v2"])
        if self.chance(0.05):
            made["annotationSelector"] = "k1"
        return made or {"kind": chosen["kind"]}

    def operations(self, chosen: dict[str, Any]) -> str:
        found = []
        for _ in range(self.rng.randint(1, 2)):
            pointers = POINTERS if self.chance(0.3) else self.pointers(chosen)
            made = {"op": self.pick(["replace", "add", "add", "remove", "test", "copy", "move", "replace"]),
                    "path": self.pick(pointers)}  # fmt: skip
            if made["op"] in ("copy", "move"):
                made["from"] = self.pick(pointers)
            elif made["op"] != "remove":
                made["value"] = self.pick(JSON_VALUES)
            found.append(made)
        return json.dumps(found) if self.chance(0.5) else yaml.safe_dump(found)

    def pointers(self, node: Any, lead: str = "") -> list[str]:
        """Of what is there, and a little beside it."""
        pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        found = [f"{lead}/new"] if isinstance(node, dict) else [f"{lead}/-", f"{lead}/{len(node)}"] if isinstance(node, list) else []
        for key, each in pairs:
            here = f"{lead}/{str(key).replace('~', '~0').replace('/', '~1')}"
            if here not in ("/apiVersion", "/kind", "/metadata"):
                found.append(here)
            found += self.pointers(each, here)
        return found or ["/x"]

    def strategic(self) -> dict[str, Any]:
        if self.made and self.chance(0.9):
            chosen = self.pick(self.made)
            patch = self.manifest(chosen["kind"], chosen["metadata"]["name"])
            patch["metadata"].pop("namespace", None)
            if space := chosen["metadata"].get("namespace"):
                patch["metadata"]["namespace"] = space
        else:
            patch = self.manifest()
        if self.chance(0.5):
            self.disturb(patch)
        if self.chance(0.04):
            patch["$patch"] = self.pick(["delete", "replace", "merge"])
        return patch

    def disturb(self, node: Any, top: bool = True) -> None:
        """Directives and nulls somewhere in a patch."""
        if isinstance(node, dict):
            for key in list(node):
                if top and key in ("apiVersion", "kind", "metadata"):
                    continue
                if self.chance(0.06):
                    node[key] = None
                else:
                    self.disturb(node[key], False)
            if not top and self.chance(0.06):
                node["$patch"] = self.pick(["delete", "replace", "merge"])
            if not top and self.chance(0.02):
                node["$retainKeys"] = list(node)
        elif isinstance(node, list):
            for each in node:
                self.disturb(each, False)
            if self.chance(0.06):
                node.append({"$patch": self.pick(["replace", "delete", "merge"])})

    def select(self) -> dict[str, Any]:
        chosen = self.pick(self.made) if self.made else {"kind": "X", "metadata": {"name": "a"}}
        made: dict[str, Any] = {"kind": chosen["kind"]}
        if self.chance(0.6):
            made["name"] = chosen["metadata"]["name"]
        return made

    def replacement(self) -> dict[str, Any]:
        source: dict[str, Any] = {**self.select(), "fieldPath": self.pick(PATHS[:14])}
        if self.chance(0.3):
            source["options"] = {"delimiter": self.pick([":", "/", "-", "."]), "index": self.pick([0, 0, 1, 2])}
        if self.chance(0.3):
            source.pop("fieldPath")
        targets = []
        for _ in range(self.rng.randint(1, 2)):
            target: dict[str, Any] = {"select": self.select(), "fieldPaths": [self.pick(PATHS)]}
            if self.chance(0.6):
                target["options"] = {"create": True}
            if self.chance(0.3):
                target.setdefault("options", {}).update(delimiter=self.pick([":", "/", "-"]), index=self.pick([0, 1, 9, -1]))
            if self.chance(0.1):
                target["reject"] = [self.select()]
            targets.append(target)
        return {"source": source, "targets": targets}

    def var(self, name: str) -> dict[str, Any]:
        chosen = self.pick(self.made) if self.made else {"kind": "X", "metadata": {"name": "a"}}
        made = {"name": name, "objref": {"apiVersion": GVKS.get(chosen["kind"], "v1"), "kind": chosen["kind"],
                "name": chosen["metadata"]["name"]}}  # fmt: skip
        if self.chance(0.5):
            made["fieldref"] = {"fieldpath": self.pick(["metadata.name", "spec.replicas", "data.x", "metadata.namespace"])}
        return made

    def configuration(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name in self.some(["namePrefix", "commonLabels", "commonAnnotations", "images", "replicas", "varReference"], 2):
            made[name] = self.some(SPECS, 2)
        if self.chance(0.5):
            specs = [{"path": "spec/source/path", "kind": "Application"}, {"path": "spec/predictor/serviceAccountName"}]
            made["nameReference"] = [{"kind": self.pick(["ConfigMap", "ServiceAccount"]), "version": "v1", "fieldSpecs": specs}]
        return made

    def transformer(self) -> dict[str, Any]:
        kind, fields = self.pick([
            ("PrefixSuffixTransformer", {"prefix": "t-", "suffix": "-u"}),
            ("NamespaceTransformer", {"unsetOnly": self.chance(0.5), "setRoleBindingSubjects": self.pick(
                ["none", "defaultOnly", "allServiceAccounts"])}),
            ("LabelTransformer", {"labels": self.pairs()}), ("AnnotationsTransformer", {"annotations": self.pairs()}),
            ("ImageTagTransformer", {"imageTag": self.image()}),
            ("ReplicaCountTransformer", {"replica": {"name": self.pick(NAMES), "count": 4}}),
            ("PatchTransformer", {"patch": yaml.safe_dump(self.strategic())}),
            ("PatchTransformer", {"patch": self.operations({"spec": {}}), "target": {"kind": "Deployment"}}),
            ("ReplacementTransformer", {"replacements": [self.replacement()]}),
            ("Unknown", {}),
        ])  # fmt: skip
        metadata = {"name": "t", "namespace": "tns"} if kind == "NamespaceTransformer" else {"name": "t"}
        return {"apiVersion": "builtin", "kind": kind, "metadata": metadata, **fields, "fieldSpecs": self.some(SPECS, 3)}


__all__ = ["KEYS", "Overlays"]
