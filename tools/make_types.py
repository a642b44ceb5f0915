"""Makes the tables of built-in kinds: `types.json.gz` (field facts) and `descriptions.json.gz` (text for `explain`).

    python tools/make_types.py ~/go/pkg/mod [--version 32.13] [--into FOLDER]

In: a Go module cache that holds Kubernetes' API modules of one version. Out: two files, by default beside the schemas.
The format of `types.json.gz` is read by argosy.kube.schema.builtin_go_struct_fields, which describes it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

from go_literal import read_definitions
from go_source import GoField, GoPackage, read_package

DATA = Path(__file__).parents[1] / "src/argosy/kube/schema/data"
# fmt: off
API_GROUPS = (
    "core/v1", "apps/v1", "batch/v1", "autoscaling/v1", "autoscaling/v2", "networking/v1", "policy/v1", "rbac/v1",
    "storage/v1", "coordination/v1", "discovery/v1", "events/v1", "admissionregistration/v1", "scheduling/v1",
    "node/v1", "certificates/v1", "flowcontrol/v1", "authentication/v1", "authorization/v1",
)
# fmt: on
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
EXTENSIONS = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
PACKAGES = (
    *(f"k8s.io/api/{group}" for group in API_GROUPS),
    META,
    EXTENSIONS,
    "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
)
# What is not a root of some API, or reachable from one, is not in the table.
META_ROOTS = [
    "DeleteOptions",
    "CreateOptions",
    "UpdateOptions",
    "PatchOptions",
    "Status",
    "WatchEvent",
    "ListMeta",
    "PartialObjectMetadata",
    "APIGroup",
    "APIGroupList",
    "APIVersions",
    "APIResourceList",
]
SPECIAL = {
    f"{META}.Time": "Time",
    f"{META}.MicroTime": "MicroTime",
    f"{META}.Duration": "Duration",
    f"{META}.FieldsV1": "Raw",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "Raw",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
    "k8s.io/apimachinery/pkg/types.UID": "string",
    "k8s.io/apimachinery/pkg/types.NodeName": "string",
    f"{EXTENSIONS}.JSON": "Raw",
    f"{EXTENSIONS}.JSONSchemaPropsOrBool": "SchemaOrBool",
    f"{EXTENSIONS}.JSONSchemaPropsOrArray": "SchemaOrArray",
    f"{EXTENSIONS}.JSONSchemaPropsOrStringArray": "SchemaOrStringArray",
}
SCALARS = {"string", "int32", "int64", "bool", "float64"}
_CONSTANT = re.compile(r'^\s*(\w+)\s+\w+\s+= "([^"]*)"', re.M)


class Maker:
    """Collects the types that are reachable from the roots."""

    def __init__(self, packages: dict[str, GoPackage], definitions: dict[str, Any], constants: dict[str, str]) -> None:
        self.packages = packages
        self.definitions = definitions
        self.constants = constants
        self.types: dict[str, str] = {}
        self.descriptions: dict[str, Any] = {}
        self.enums: dict[str, list[str]] = {}

    def add(self, go_name: str) -> None:
        name = openapi_name(go_name)
        if name in self.types:
            return
        self.types[name] = ""
        self.describe(go_name, name)
        if special := SPECIAL.get(go_name):
            self.types[name] = f"={special}"
            return
        path, _, local = go_name.rpartition(".")
        package = self.packages[path]
        declared = package.types[local]
        if declared.underlying:
            written = self.written(package, declared.underlying)
            if "protobuf.nullable" in declared.markers:
                written = f"({written})"
            self.types[name] = " ".join([f"={written}", *self.enums.get(go_name, [])])
            return
        atomic = "atomic" in declared.markers.get("structType", []) + declared.markers.get("mapType", [])
        lines = [self.line(package, go_name, field) for field in declared.fields]
        self.types[name] = "\n".join(["atomic" if atomic else "", *lines])

    def written(self, package: GoPackage, go_type: str) -> str:
        """A Go type in the table's words: `[]` list of, `{}` map of, a scalar, `.Local` or a full name."""
        go_type = go_type.removeprefix("*")
        if go_type == "[]byte":
            return "bytes"
        if go_type.startswith("[]"):
            return "[]" + self.written(package, go_type[2:])
        if match := re.match(r"map\[([\w.]+)\](.*)", go_type):
            return "{}" + self.written(package, match[2])
        if go_type in SCALARS:
            return go_type
        full = package.resolve(go_type)
        self.add(full)
        return "." + go_type if "." not in go_type else openapi_name(full)

    def line(self, package: GoPackage, owner: str, field: GoField) -> str:
        """`name type number flags extra…`: p pointer, o omitempty, r required, i flattened into its owner."""
        schema = self.property_of(owner, field.name)
        pointer = "p" if field.go_type.startswith("*") else ""
        omit = "o" if field.omitempty else ""
        required = "r" if field.name in self.required_of(owner) else ""
        inline = "" if field.name else "i"
        words = [
            field.name or field.proto_name or "-",
            self.written(package, field.go_type),
            str(field.number),
            (pointer + omit + required + inline) or "-",
            *self.extras(field, schema),
        ]
        self.learn_enum(package, field.go_type, schema)
        return " ".join(words)

    def extras(self, field: GoField, schema: dict[str, Any]) -> list[str]:
        """Facts beyond the type. The generated OpenAPI is the authority; the markers must say the same."""
        extensions = schema.get("VendorExtensible", {}).get("Extensions", {})
        words = []
        for word, key, marked in (
            ("list", "x-kubernetes-list-type", field.marker("listType")),
            ("keys", "x-kubernetes-list-map-keys", ",".join(field.markers.get("listMapKey", []))),
            ("map", "x-kubernetes-map-type", field.marker("mapType") or field.marker("structType")),
            ("key", "x-kubernetes-patch-merge-key", field.tags.get("patchMergeKey", "")),
            ("patch", "x-kubernetes-patch-strategy", field.tags.get("patchStrategy", "")),
        ):
            value = ",".join(extensions[key]) if isinstance(extensions.get(key), list) else extensions.get(key, "")
            if schema and value != marked:
                raise SystemExit(f"{field.name}: {key} is {value!r}, its marker says {marked!r}")
            if marked:
                words.append(f"{word}={marked}")
        default = schema.get("SchemaProps", {}).get("Default")
        # Where the field cannot be absent in Go, a zero default says nothing.
        if default not in (None, {}) and (default or field.omitempty or field.go_type.startswith("*")):
            words.append(f"default={json.dumps(self.constants.get(str(default).removeprefix('v1.'), default))}")
        return words

    def learn_enum(self, package: GoPackage, go_type: str, schema: dict[str, Any]) -> None:
        while schema and not (values := schema["SchemaProps"].get("Enum")):
            below = schema["SchemaProps"].get("Items") or schema["SchemaProps"].get("AdditionalProperties") or {}
            schema = below.get("Schema") or {}
        if not schema:
            return
        full = package.resolve(re.sub(r"^(\*|\[\]|map\[\w+\])+", "", go_type))
        name = openapi_name(full)
        if self.enums.setdefault(full, values) != values:
            raise SystemExit(f"{full} has two sets of values")
        if self.types[name].startswith("=string") and " " not in self.types[name]:
            self.types[name] = " ".join(["=string", *values])

    def describe(self, go_name: str, name: str) -> None:
        props = self.definitions.get(go_name, {}).get("SchemaProps", {})
        properties = props.get("Properties", {})
        fields = {key: value["SchemaProps"].get("Description", "") for key, value in properties.items()}
        if props:
            self.descriptions[name] = [props.get("Description", ""), fields]

    def property_of(self, owner: str, field: str) -> dict[str, Any]:
        return self.definitions.get(owner, {}).get("SchemaProps", {}).get("Properties", {}).get(field) or {}

    def required_of(self, owner: str) -> list[str]:
        return self.definitions.get(owner, {}).get("SchemaProps", {}).get("Required") or []


def openapi_name(go_name: str) -> str:
    """`k8s.io/api/core/v1.Pod` is `io.k8s.api.core.v1.Pod`."""
    host, _, rest = go_name.partition("/")
    return ".".join([*reversed(host.split(".")), *rest.split("/")])


def roots(package: GoPackage) -> list[str]:
    """Kinds: types with TypeMeta and not a list. Of meta/v1 only what a server reads or writes."""
    if package.path == META:
        return META_ROOTS
    return [
        name
        for name, declared in package.types.items()
        if any(field.go_type.endswith("TypeMeta") for field in declared.fields)
        and not any(field.go_type.endswith("ListMeta") for field in declared.fields)
        and not name.endswith("Options")
    ]


def write(file: Path, content: Any) -> None:
    text = json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    packed = gzip.compress(text.encode(), 9, mtime=0)
    file.write_bytes(packed)
    print(f"{file.name}: {len(packed)} bytes, {len(text)} unpacked")


def main(cache: Path, version: str, into: Path) -> None:
    folders = {}
    for path in PACKAGES:
        module = "/".join(path.split("/")[:2])
        folders[path] = cache / f"{module}@v0.{version}" / path.removeprefix(module + "/")
    missing = sorted(str(folder) for folder in folders.values() if not folder.is_dir())
    if missing:
        sys.exit(f"make_types: Go modules are missing: {', '.join(missing)}; run: sh tests/realcluster/build.sh")
    packages = {path: read_package(path, folder) for path, folder in folders.items()}
    generated = cache / f"k8s.io/kubernetes@v1.{version}/pkg/generated/openapi/zz_generated.openapi.go"
    constants = {
        name: value
        for folder in folders.values()
        for file in folder.glob("types*.go")
        for name, value in _CONSTANT.findall(file.read_text())
    }
    maker = Maker(packages, read_definitions(generated.read_text()), constants)
    for package in packages.values():
        for name in roots(package):
            maker.add(f"{package.path}.{name}")
    print(f"{len(maker.types)} types")
    write(into / "types.json.gz", maker.types)
    write(into / "descriptions.json.gz", maker.descriptions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path, help="the Go module cache, often ~/go/pkg/mod")
    parser.add_argument("--version", default="32.13", help="of Kubernetes, without the leading 1.")
    parser.add_argument("--into", type=Path, default=DATA)
    args = parser.parse_args()
    main(args.cache, args.version, args.into)
