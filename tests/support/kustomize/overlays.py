"""Generates kustomizations that use all fields. In: a random source. Out: a tree of files. Never: needs the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from support.kustomize.patches import Patches
from support.kustomize.trees import GVKS, IMAGES, KEYS, NAMES, SPACES, VALUES, Files, odd_manifest

PATHS = [
    "metadata.name", "metadata.namespace", "spec.replicas", "data.x", "data.z\\.conf", "metadata.labels.app",
    "spec.template.spec.containers.0.image", "spec.template.spec.containers.[name=c].image", "spec.ports.0.port",
    "spec.template.spec.containers.*.image", "spec.template.spec.containers.[name=c].env.[name=A].value",
    "metadata.annotations.[app.kubernetes.io/name]", "spec.template.metadata.labels", "spec.selector.matchLabels.k1",
    "metadata.annotations.k1", "metadata.annotations.new", "spec.new.deep", "data.new", "spec.list.0", "spec.list.-",
    "spec.template.spec.volumes.[name=v].configMap.name", "webhooks.*.clientConfig.service.name", "spec.rules.0.host",
    "metadata.labels.app\\.kubernetes\\.io/name", "subjects.[kind=ServiceAccount].namespace", "spec.containers.1",
]  # fmt: skip
Accepts = Callable[[Files], bool]
FRAME = ("resources", "bases", "components", "apiVersion", "kind")
WRONG = 0.02
SPECS: list[dict[str, Any]] = [
    {"path": "metadata/labels", "create": True}, {"path": "spec/template/metadata/labels", "create": True},
    {"path": "metadata/annotations", "create": True}, {"path": "spec/selector", "create": True, "kind": "Service"},
    {"path": "spec/foo/bar", "create": True}, {"path": "spec/foo", "kind": "Deployment", "group": "apps"},
    {"path": "metadata/name"}, {"path": "metadata/namespace", "create": True}, {"path": "spec/replicas",
    "create": True},
    {"path": "spec/template/spec/containers[]/image"}, {"path": "spec/source/path", "kind": "Application"},
]  # fmt: skip


class Overlays(Patches):
    """Generates a tree with bases, overlays, components, and the folder `top` to build."""

    def tree(self, accepts: Accepts) -> Files:
        """Return the files of a tree; drops most fields that `accepts` rejects, so that most trees are valid."""
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
        existing = fields.get(name)
        fields[name] = [*existing, *value] if isinstance(existing, list) else value
        if not accepts(self.files) and not self.chance(WRONG):
            fields.pop(name)
            if existing is not None:
                fields[name] = existing

    def draft(self) -> None:
        bases = ["base"] if self.chance(0.7) else ["base", "other"]
        for base in bases:
            self.base(base)
        above = bases
        for depth in range(self.rng.randint(0, 2)):
            folder = f"mid{depth}"
            self.overlay(folder, [f"../{parent}" for parent in above])
            above = [folder, *(self.some(bases, 1) if self.chance(0.1) else [])]
        self.overlay("top", [f"../{parent}" for parent in above])

    def fresh(self, most: int) -> list[Any]:
        """Generate documents; only few of them reuse an existing kind and name."""
        documents: list[Any] = []
        for document in self.documents(most):
            if isinstance(document, dict) and (metadata := document.get("metadata")):
                known_ids = [(old["kind"], old["metadata"]["name"]) for old in self.made]
                if (document["kind"], metadata["name"]) in known_ids and not self.chance(0.03):
                    continue
                self.made.append(document)
            documents.append(document)
        return documents or [self.manifest("ConfigMap", f"spare{len(self.files)}")]

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
                {"resources": ["missing.yaml"]}, {"labels": [{}]}, {"images": [None]},
                {"replicas": [{"name": "zz"}]}]))  # fmt: skip
        self.files[f"{folder}/{self.pick(['kustomization.yaml'] * 8 + ['kustomization.yml', 'Kustomization'])}"] = [
            fields
        ]

    def finish(self, fields: dict[str, Any]) -> None:
        if self.chance(0.2):
            fields["sortOptions"] = self.pick([{"order": "fifo"}, {"order": "legacy"}, {"order": "fifo"},
                {"order": "legacy", "legacySortOptions": {"orderFirst": ["Deployment"],
                "orderLast": ["Secret"]}}])  # fmt: skip
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
            fields["vars"] = [self.var(var_name) for var_name in self.some(["V1", "V2"])]
        if maybe(0.08):
            self.files[f"{folder}/config.yaml"] = [self.configuration()]
            fields["configurations"] = ["config.yaml"]
        if maybe(0.08):
            text = self.transformer()
            fields["transformers"] = [yaml.safe_dump(text)] if self.chance(0.5) else ["t.yaml"]
            self.files[f"{folder}/t.yaml"] = [text]

    def names(self, *kinds: str) -> list[str]:
        return [manifest["metadata"]["name"] for manifest in self.made if manifest["kind"] in kinds]

    def label(self) -> dict[str, Any]:
        entry: dict[str, Any] = {"pairs": self.pairs()}
        for option in ("includeSelectors", "includeTemplates"):
            if self.chance(0.3):
                entry[option] = self.chance(0.8)
        if self.chance(0.2):
            entry["fields"] = self.some(SPECS, 2)
        return entry

    def image(self) -> dict[str, Any]:
        name = self.pick(IMAGES).split("@")[0]
        entry: dict[str, Any] = {"name": self.pick([name, name.rpartition(":")[0] or name, "app", "reg.io.*"])}
        for field, pool in (("newName", ["new/app", "r:50/x"]), ("newTag", ["v2", "1.5"]), ("digest", ["sha256:def"])):
            if self.chance(0.4):
                entry[field] = self.pick(pool)
        if self.chance(0.05):
            entry["tagSuffix"] = "-x"
        return entry

    def generators(self, folder: str, fields: dict[str, Any], maybe: Any) -> None:
        if maybe(0.15):
            fields["generatorOptions"] = self.options()
        for name in ("configMapGenerator", "secretGenerator"):
            if maybe(0.25):
                fields[name] = [self.generator(folder, name) for _ in range(self.rng.randint(1, 2))]

    def options(self) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        for option in ("disableNameSuffixHash", "immutable"):
            if self.chance(0.3):
                entry[option] = self.chance(0.7)
        for option in ("labels", "annotations"):
            if self.chance(0.3):
                entry[option] = self.pairs()
        return entry

    def generator(self, folder: str, name: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": self.pick([*NAMES, "gen", "gen2"])}
        if self.chance(0.5):
            entry["literals"] = [f"{key}={self.pick(VALUES)}" for key in self.some(["x", "y", "l.conf"])]
        if self.chance(0.3):
            entry["files"] = [self.pick(["f.txt", "key=f.txt", "bin=b.bin", "f.txt"])]
            self.files[f"{folder}/f.txt"] = self.pick(["hello\nworld\n", "<a&b>\u2028", "", "tail  \n\n", "a: 1\r\n"])
            self.files[f"{folder}/b.bin"] = "\ufffdbin" * self.rng.randint(1, 40)
        if self.chance(0.2):
            entry[self.pick(["envs", "envs", "env"])] = ["e.env"]
            if "env" in entry:
                entry["env"] = "e.env"
            self.files[f"{folder}/e.env"] = self.pick(
                ["A=1\nB=2\n", "# c\n\n  A=x=y\nB=\n", "A\nB= 2 \n", "\ufeffA='q'\r\n"]
            )
        if self.chance(0.3):
            entry["behavior"] = self.pick(["merge", "replace", "create", "merge"])
        if self.chance(0.3):
            entry["options"] = self.options()
        if self.chance(0.15):
            entry["namespace"] = self.pick(SPACES)
        if name == "secretGenerator" and self.chance(0.3):
            entry["type"] = "kubernetes.io/tls"
        return entry

    def select(self) -> dict[str, Any]:
        manifest = self.pick(self.made) if self.made else {"kind": "X", "metadata": {"name": "a"}}
        selector: dict[str, Any] = {"kind": manifest["kind"]}
        if self.chance(0.6):
            selector["name"] = manifest["metadata"]["name"]
        return selector

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
                target.setdefault("options", {}).update(
                    delimiter=self.pick([":", "/", "-"]), index=self.pick([0, 1, 9, -1])
                )
            if self.chance(0.1):
                target["reject"] = [self.select()]
            targets.append(target)
        return {"source": source, "targets": targets}

    def var(self, name: str) -> dict[str, Any]:
        manifest = self.pick(self.made) if self.made else {"kind": "X", "metadata": {"name": "a"}}
        entry = {"name": name, "objref": {"apiVersion": GVKS.get(manifest["kind"], "v1"), "kind": manifest["kind"],
                "name": manifest["metadata"]["name"]}}  # fmt: skip
        if self.chance(0.5):
            entry["fieldref"] = {
                "fieldpath": self.pick(["metadata.name", "spec.replicas", "data.x", "metadata.namespace"])
            }
        return entry

    def configuration(self) -> dict[str, Any]:
        entry: dict[str, Any] = {}
        for name in self.some(
            ["namePrefix", "commonLabels", "commonAnnotations", "images", "replicas", "varReference"], 2
        ):
            entry[name] = self.some(SPECS, 2)
        if self.chance(0.5):
            specs = [{"path": "spec/source/path", "kind": "Application"}, {"path": "spec/predictor/serviceAccountName"}]
            entry["nameReference"] = [
                {"kind": self.pick(["ConfigMap", "ServiceAccount"]), "version": "v1", "fieldSpecs": specs}
            ]
        return entry

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
        return {
            "apiVersion": "builtin",
            "kind": kind,
            "metadata": metadata,
            **fields,
            "fieldSpecs": self.some(SPECS, 3),
        }


__all__ = ["KEYS", "Overlays"]
