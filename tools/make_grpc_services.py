"""Makes the table of Argo CD's gRPC services, `services.json.gz`: their methods, REST routes and messages.

    python tools/make_grpc_services.py FOLDER [--version v3.5.6] [--into FOLDER]

In: a source tree of Argo CD. Out: one file, by default beside the server's gRPC-Web gateway. The format of a message is
that of tools/make_types.py, and argosy.kube.schema.builtin_go_struct_fields describes it; messages of Kubernetes are
looked up there. The flag r marks a required field of proto2. A method is one text: `request response streams` (c
client, s server, - none), then a line `METHOD path body` for each REST route, the best first; body is a field, * or -.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from go_source import GoField, read_package
from proto_source import ProtoField, ProtoFile, read_proto

INTO = Path(__file__).parents[1] / "src/argosy/web/grpc/data"
V1ALPHA1 = "github.com.argoproj.argo_cd.v3.pkg.apis.application.v1alpha1"
# Full names are too long for a table and for error messages.
SHORT_PACKAGES = {V1ALPHA1: "v1alpha1", "github.com.argoproj.argo_cd.server.settings.oidc": "oidc"}
SCALARS = {
    "string": "string",
    "bool": "bool",
    "int32": "int32",
    "int64": "int64",
    "bytes": "bytes",
    "double": "float64",
}
# Messages outside Argo CD's files that the table of Kubernetes' types does not have.
FOREIGN = {
    "google.protobuf.Empty": "",
    "io.k8s.apimachinery.pkg.apis.meta.v1.GroupKind": "\ngroup string 1 -\nkind string 2 -",
}


class Maker:
    """Collects the messages that the methods of services need."""

    def __init__(self, source: Path) -> None:
        self.files: dict[str, list[ProtoFile]] = {}  # several files may have the same package
        self.types: dict[str, str] = {}
        self.go_types = read_package(V1ALPHA1, source / "pkg/apis/application/v1alpha1").types
        paths = [*sorted(source.glob("server/*/*.proto")), *sorted(source.glob("server/*/*/*.proto"))]
        paths += [source / "reposerver/repository/repository.proto"]
        paths += [source / "pkg/apis/application/v1alpha1/generated.proto"]
        self.services = {}
        for path in paths:
            file = read_proto(path)
            package = SHORT_PACKAGES.get(file.package, file.package)
            self.files.setdefault(package, []).append(file)
            if path.is_relative_to(source / "server"):
                self.services |= {f"{package}.{name}": (package, methods) for name, methods in file.services.items()}

    def build_methods(self) -> dict[str, str]:
        return dict(self._list_methods())

    def _list_methods(self) -> Iterator[tuple[str, str]]:
        for service, (package, methods) in self.services.items():
            for method in methods:
                if not method.bindings:
                    raise SystemExit(f"{service}/{method.name} has no REST route")
                request, response = (self.add(name, package) for name in (method.request, method.response))
                streams = ("c" if method.is_client_stream else "") + ("s" if method.is_server_stream else "")
                routes = [f"{verb} {path} {body or '-'}" for verb, path, body in method.bindings]
                yield f"/{service}/{method.name}", "\n".join([f"{request} {response} {streams or '-'}", *routes])

    def add(self, written: str, package: str) -> str:
        """Add a message and what it needs; return its name in the table."""
        name = self.resolve(written, package)
        if name in self.types or (name.startswith("io.k8s.") and name not in FOREIGN):
            return name
        if name in FOREIGN:
            self.types[name] = FOREIGN[name]
            return name
        package, _, local = name.rpartition(".")
        file = next((file for file in self.files.get(package, []) if local in file.messages), None)
        if file is None:
            raise SystemExit(f"unknown message {written} of package {package}")
        self.types[name] = ""
        go_fields = self.find_go_fields(local) if package == "v1alpha1" else None
        lines = [
            self.build_line(field, package, go_fields[field.name] if go_fields else None, file)
            for field in sorted(file.messages[local], key=lambda field: field.number)
        ]
        self.types[name] = "\n".join(["", *lines])
        return name

    def resolve(self, written: str, package: str) -> str:
        name = written.removeprefix(".")
        for full, short in SHORT_PACKAGES.items():
            if name.startswith(full + "."):
                return f"{short}.{name.removeprefix(full + '.')}"
        if name.startswith("k8s.io."):
            return "io.k8s." + name.removeprefix("k8s.io.").replace(
                "apiextensions_apiserver", "apiextensions-apiserver"
            )
        return name if "." in name else f"{package}.{name}"

    def find_go_fields(self, message: str) -> dict[str, GoField | None]:
        """Find the Go field of each field of a message; None if it has no JSON tag, and so no JSON name of its own."""
        go_type = self.go_types[message]
        by_name = {field.name: field for field in go_type.fields}
        by_name |= {field.proto_name: field for field in go_type.fields}
        fields = self.files["v1alpha1"][0].messages[message]
        if unknown := [field.name for field in fields if go_type.fields and field.name not in by_name]:
            raise SystemExit(f"{message}: no Go field for {', '.join(unknown)}")
        return {field.name: by_name.get(field.name) for field in fields}

    def build_line(self, field: ProtoField, package: str, go_field: GoField | None, file: ProtoFile) -> str:
        is_scalar = field.type in SCALARS
        type_ = field.type if is_scalar else self.add(field.type, package)
        if type_.startswith(package + "."):
            type_ = type_.removeprefix(package)
        type_ = {"repeated": "[]", "map": "{}"}.get(field.label, "") + type_
        name = field.name
        if go_field is None:
            flags = self.find_flags(field, is_proto3=file.is_proto3 or package == "v1alpha1", is_scalar=is_scalar)
        else:
            is_inline = go_field.name in ("", go_field.go_type)  # argo: some are embedded without `inline`
            name = field.name if is_inline else go_field.name
            is_pointer = go_field.go_type.startswith("*")
            flags = "p" * is_pointer + "o" * (go_field.omitempty and not is_inline) + "i" * is_inline
        return f"{name} {type_} {field.number} {flags or '-'}"

    def find_flags(self, field: ProtoField, *, is_proto3: bool, is_scalar: bool) -> str:
        if field.label in ("repeated", "map"):
            return "o"
        if field.is_oneof:
            return "po"
        if not is_proto3:
            return "r" if field.label == "required" else "po"
        if is_scalar:
            return "o"
        return "" if field.options.get("gogoproto.nullable") == "false" else "po"


def main(source: Path, version: str, into: Path) -> None:
    maker = Maker(source)
    methods = maker.build_methods()
    table = {"version": version, "methods": methods, "types": maker.types}
    text = json.dumps(table, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    packed = gzip.compress(text.encode(), 9, mtime=0)
    (into / "services.json.gz").write_bytes(packed)
    print(f"{len(methods)} methods, {len(maker.types)} messages, {len(packed)} bytes, {len(text)} unpacked")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the source tree of Argo CD")
    parser.add_argument("--version", default="v3.5.6", help="of the source tree")
    parser.add_argument("--into", type=Path, default=INTO)
    args = parser.parse_args()
    main(args.source, args.version, args.into)
