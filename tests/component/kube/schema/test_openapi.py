from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.schema import openapi_v3_documents
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from support import go_modules
from support.deadlines import HANG_SECONDS

KUBECTL = shutil.which("kubectl", path=str(Path(sys.executable).parent)) or shutil.which("kubectl")
MODULES = go_modules.folder()
PUBLISHED = MODULES / "k8s.io/kubernetes@v1.32.13/api/openapi-spec/v3"
WIDGET = ApiResource("argosy.dev", "v1", "Widget", "widgets", "widget", namespaced=True, custom=True)
WIDGET_SCHEMA = {
    "type": "object",
    "description": "A widget.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "description": "What it shall be.",
            "properties": {
                "size": {"type": "integer", "description": "How big."},
                "mode": {"type": "string", "enum": ["fast", "slow"]},
            },
        }
    },
}
GROUPS = openapi_v3_documents.group_by_path([*BUILTIN_RESOURCES, WIDGET])
SCHEMAS = {"apis/argosy.dev/v1": {"Widget": WIDGET_SCHEMA}}


def full(path: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(openapi_v3_documents.build_full_document(GROUPS[path], SCHEMAS.get(path)))
    return document


def test_index_lists_every_group_version_with_a_hash() -> None:
    paths = openapi_v3_documents.build_index([*BUILTIN_RESOURCES, WIDGET], SCHEMAS)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/argosy.dev/v1"} < set(paths)
    assert re.fullmatch(r"/openapi/v3/api/v1\?hash=[0-9A-F]{64}", paths["api/v1"]["serverRelativeURL"])


def test_hash_changes_only_with_the_custom_schema() -> None:
    path = "apis/argosy.dev/v1"
    before = openapi_v3_documents.build_index([*BUILTIN_RESOURCES, WIDGET], SCHEMAS)["paths"]
    changed = {path: {"Widget": {**WIDGET_SCHEMA, "description": "Another."}}}
    after = openapi_v3_documents.build_index([WIDGET, *BUILTIN_RESOURCES], changed)["paths"]
    assert {document_path for document_path in before if before[document_path] != after[document_path]} == {path}


def test_stub_document_has_one_patch_path_per_kind_and_no_schemas() -> None:
    document = json.loads(openapi_v3_documents.build_stub_document(GROUPS["apis/apps/v1"]))
    assert set(document) == {"openapi", "info", "paths"}
    assert len(document["paths"]) == 5
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["parameters"] == [{"name": "fieldValidation", "in": "query"}]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}


def test_stub_of_the_core_group_always_contains_namespaces() -> None:
    config_maps = [resource for resource in GROUPS["api/v1"] if resource.kind == "ConfigMap"]
    assert "/api/v1/namespaces/{name}" in json.loads(openapi_v3_documents.build_stub_document(config_maps))["paths"]
    assert (
        "/api/v1/namespaces/{name}"
        not in json.loads(openapi_v3_documents.build_stub_document(GROUPS["apis/apps/v1"]))["paths"]
    )


def test_stub_document_is_smaller_than_400_bytes_per_kind() -> None:
    assert len(openapi_v3_documents.build_stub_document(GROUPS["api/v1"])) < 400 * len(GROUPS["api/v1"])


def test_all_schema_references_of_full_documents_resolve() -> None:
    for path in GROUPS:
        document = full(path)
        named = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
        assert named <= set(document["components"]["schemas"]), path


def test_paths_contain_only_served_verbs() -> None:
    paths = full("apis/authorization.k8s.io/v1")["paths"]
    assert set(paths["/apis/authorization.k8s.io/v1/subjectaccessreviews"]) == {"post"}
    assert "/apis/authorization.k8s.io/v1/subjectaccessreviews/{name}" not in paths


def test_strategic_merge_patch_is_offered_only_for_built_in_kinds() -> None:
    strategic = "application/strategic-merge-patch+json"
    built_in = full("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    custom = full("apis/argosy.dev/v1")["paths"]["/apis/argosy.dev/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert strategic in built_in["requestBody"]["content"]
    assert strategic not in custom["requestBody"]["content"]


def test_custom_kind_schema_gets_api_version_kind_and_metadata() -> None:
    schema = full("apis/argosy.dev/v1")["components"]["schemas"]["dev.argosy.v1.Widget"]
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "argosy.dev", "version": "v1", "kind": "Widget"}]
    assert schema["properties"]["spec"] == WIDGET_SCHEMA["properties"]["spec"]  # type: ignore[index]


def test_enum_and_default_of_string_types_are_included() -> None:
    schemas = full("api/v1")["components"]["schemas"]
    protocol = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]
    assert (protocol["enum"], protocol["default"]) == (["SCTP", "TCP", "UDP"], "TCP")


def without_values(schema: Any) -> Any:
    """Remove enum values: the published documents are generated without them."""
    match schema:
        case dict():
            filtered_schema = {key: value for key, value in schema.items() if key != "enum" or isinstance(value, dict)}
            return {key: without_values(value) for key, value in filtered_schema.items()}
        case list():
            return [without_values(value) for value in schema]
        case str():
            return re.sub(r"\n\nPossible enum values:.*", "", schema, flags=re.DOTALL)
    return schema


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the Go module k8s.io/kubernetes is not in the module cache")
def test_properties_match_the_published_documents() -> None:
    compared = 0
    for path in openapi_v3_documents.group_by_path(BUILTIN_RESOURCES):
        published = json.loads((PUBLISHED / f"{path.replace('/', '__')}_openapi.json").read_text())
        published_schemas = published["components"]["schemas"]
        for name, schema in full(path)["components"]["schemas"].items():
            if name in published_schemas and not name.endswith("List"):
                assert without_values(schema.get("properties")) == published_schemas[name].get("properties"), name
                assert sorted(schema.get("required", [])) == sorted(published_schemas[name].get("required", [])), name
                assert schema.get("description") == published_schemas[name].get("description"), name
                compared += 1
    assert compared > 600


# `kubectl explain` with these documents.


class Server(BaseHTTPRequestHandler):
    """Serves discovery and OpenAPI, nothing else."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path in ("/api", "/apis"):
            resources = [
                resource for resource in [*BUILTIN_RESOURCES, WIDGET] if bool(resource.group) == (path == "/apis")
            ]
            self.answer(
                json.dumps(discovery(resources)).encode(), ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            )
        elif path == "/openapi/v3":
            self.answer(json.dumps(openapi_v3_documents.build_index([*BUILTIN_RESOURCES, WIDGET], SCHEMAS)).encode())
        elif (name := path.removeprefix("/openapi/v3/")) in GROUPS:
            self.answer(openapi_v3_documents.build_full_document(GROUPS[name], SCHEMAS.get(name)))
        else:
            self.send_error(404)

    def answer(self, body: bytes, parameters: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json" + parameters)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def discovery(resources: list[ApiResource]) -> dict[str, Any]:
    items = []
    for group_resources in openapi_v3_documents.group_by_path(resources).values():
        resource_entries = [
            {
                "resource": one.plural,
                "responseKind": {"group": one.group, "version": one.version, "kind": one.kind},
                "scope": "Namespaced" if one.namespaced else "Cluster",
                "singularResource": one.singular,
                "shortNames": one.short_names,
                "verbs": one.verbs,
            }
            for one in group_resources
        ]
        versions = [{"version": group_resources[0].version, "freshness": "Current", "resources": resource_entries}]
        items.append({"metadata": {"name": group_resources[0].group}, "versions": versions})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def explain(url: str, home: Path, *words: str) -> str:
    command = [str(KUBECTL), "explain", *words, f"--server={url}", f"--cache-dir={home}"]
    environment = {"HOME": str(home), "KUBECONFIG": str(home / "none")}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=HANG_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@needs_kubectl
def test_kubectl_explains_a_list_of_containers(url: str, tmp_path: Path) -> None:
    text = explain(url, tmp_path, "pod.spec.containers")
    assert text.startswith("KIND:       Pod\nVERSION:    v1\n\nFIELD: containers <[]Container>\n")
    assert "  name\t<string> -required-\n    Name of the container" in text
    assert "  imagePullPolicy\t<string>\n  enum: Always, IfNotPresent, Never\n" in text
    assert "  resources\t<ResourceRequirements>\n" in text


@needs_kubectl
def test_kubectl_explain_recursive_shows_nested_deployment_fields(url: str, tmp_path: Path) -> None:
    text = explain(url, tmp_path, "deploy", "--recursive")
    assert text.startswith("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n")
    assert "  spec\t<DeploymentSpec>\n" in text
    assert "    selector\t<LabelSelector> -required-\n      matchExpressions\t<[]LabelSelectorRequirement>\n" in text
    assert "        maxSurge\t<IntOrString>\n" in text
    assert "            containerPort\t<integer> -required-\n" in text


@needs_kubectl
def test_kubectl_explains_a_custom_kind(url: str, tmp_path: Path) -> None:
    text = explain(url, tmp_path, "widget.spec")
    assert text.startswith("GROUP:      argosy.dev\nKIND:       Widget\nVERSION:    v1\n\nFIELD: spec <Object>\n")
    assert "  size\t<integer>\n    How big.\n" in text
    assert "  mode\t<string>\n  enum: fast, slow\n" in text
