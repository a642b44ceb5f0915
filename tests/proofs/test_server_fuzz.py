"""Fuzz the API server with malformed requests: each gets a response, none an internal error, and the server survives.

Manifests of many kinds get unexpected values in a few places and are sent to slightly wrong paths, as bodies and as
patches of every type. ARGOSY_PROOF_SEED repeats a run.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pytest
import yaml

from support.clusters import Answer, Sandbox, ask, sandbox
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.tier("test", "prove")

JUNK: list[Any] = [
    None, True, 0, -1, 5, 2**31, 2**63, 2**70, 1.5, 1e308, "", "x", "X_y", "a" * 300, "ü\u2028\u0000", "10Mi", "50%",
    "-5", "../..", "{{", "$(a)", [], [None], [5], ["x", "x"], [[]], {}, {"": ""}, {"a": None}, {"$patch": "delete"},
    {"x": {"y": {"z": [1, {"a": 2}]}}}, {"matchLabels": 5}, [{"name": "c"}, {"name": "c"}],
]  # fmt: skip
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{
    "name": "c", "image": "i:1", "ports": [{"containerPort": 80}], "env": [{"name": "E", "value": "v"}],
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}, "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "livenessProbe": {"httpGet": {"path": "/", "port": 80}}}], "volumes": [{"name": "v", "emptyDir": {}}]}}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": {
    "size": {"type": "integer", "minimum": 1, "default": 3}, "name": {"type": "string", "pattern": "^[a-z]+$"},
    "list": {"type": "array", "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
             "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}}}}  # fmt: skip
RBAC = "rbac.authorization.k8s.io/v1"
KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/v1/namespaces/default/configmaps", "v1 ConfigMap", {"data": {"a": "b"}, "binaryData": {"b": "AAAA"}}),
    ("/api/v1/namespaces/default/secrets", "v1 Secret", {"stringData": {"a": "b"}, "type": "Opaque"}),
    ("/api/v1/namespaces/default/pods", "v1 Pod", POD),
    ("/api/v1/namespaces/default/services", "v1 Service",
     {"spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": {"a": "b"}, "type": "NodePort"}}),
    ("/api/v1/namespaces/default/serviceaccounts", "v1 ServiceAccount", {"secrets": [{"name": "s"}]}),
    ("/api/v1/namespaces/default/persistentvolumeclaims", "v1 PersistentVolumeClaim",
     {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    ("/api/v1/namespaces/default/events", "v1 Event",
     {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "count": 1, "type": "Normal"}),
    ("/api/v1/namespaces", "v1 Namespace", {"spec": {"finalizers": ["kubernetes"]}}),
    ("/api/v1/nodes", "v1 Node", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
    ("/apis/apps/v1/namespaces/default/deployments", "apps/v1 Deployment",
     {"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": POD,
               "strategy": {"rollingUpdate": {"maxSurge": "25%"}}}}),
    ("/apis/apps/v1/namespaces/default/statefulsets", "apps/v1 StatefulSet",
     {"spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": POD}}),
    ("/apis/batch/v1/namespaces/default/jobs", "batch/v1 Job",
     {"spec": {"completions": 2, "template": {"spec": {**POD["spec"], "restartPolicy": "Never"}}}}),
    ("/apis/batch/v1/namespaces/default/cronjobs", "batch/v1 CronJob",
     {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {
         "spec": {**POD["spec"], "restartPolicy": "Never"}}}}}}),
    ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", "autoscaling/v2 HorizontalPodAutoscaler",
     {"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "metrics": [
         {"type": "Resource", "resource": {
             "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}}]}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "networking.k8s.io/v1 Ingress",
     {"spec": {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {
         "service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
    (f"/apis/{RBAC}/clusterroles", f"{RBAC} ClusterRole",
     {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    (f"/apis/{RBAC}/namespaces/default/rolebindings", f"{RBAC} RoleBinding",
     {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
      "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "policy/v1 PodDisruptionBudget",
     {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "coordination.k8s.io/v1 Lease",
     {"spec": {"holderIdentity": "h", "leaseDurationSeconds": 5, "renewTime": "2024-01-01T00:00:00.000000Z"}}),
    ("/apis/storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1 StorageClass", {"provisioner": "p"}),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "apiextensions.k8s.io/v1 CustomResourceDefinition",
     {"spec": {"group": "fuzz.dev", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
               "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA},
                             "additionalPrinterColumns": [{"name": "S", "type": "integer", "jsonPath": ".spec.size"}],
                             "subresources": {"status": {}}}]}}),
    ("/apis/fuzz.dev/v1/namespaces/default/things", "fuzz.dev/v1 Thing",
     {"spec": {"size": 5, "name": "abc", "list": [{"k": "a"}, {"k": "b"}]}}),
]  # fmt: skip
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
           "application/apply-patch+yaml")  # fmt: skip
PARTS = ("/status", "/scale", "/log", "/token", "/eviction", "/binding", "/finalize", "/nope")
ACCEPT = (*["application/json"] * 8, "application/yaml", "application/vnd.kubernetes.protobuf", "*/*", "nonsense",
          "application/json;as=Table;v=v1;g=meta.k8s.io",
          "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
          "application/json;as=Nothing;g=x;v=y")  # fmt: skip
OPTIONS = {
    "dryRun": ["All", "x"], "fieldValidation": ["Strict", "Warn", "Ignore", "x"], "fieldManager": ["m", "", "\n"],
    "force": ["true", "x"], "limit": ["1", "-1", "x"], "continue": ["x", "e30"], "resourceVersion": ["0", "1", "x"],
    "resourceVersionMatch": ["Exact", "NotOlderThan", "x"], "labelSelector": ["a=b", "a in (b", "!a", "=", "a>1"],
    "fieldSelector": ["metadata.name=x", "spec.x=1", "=", "a!=b,c"], "propagationPolicy": ["Foreground", "Orphan", "x"],
    "gracePeriodSeconds": ["0", "-1", "x"], "includeObject": ["None", "Object", "x"], "pretty": ["true"],
    "timeoutSeconds": ["1"], "sendInitialEvents": ["true"], "allowWatchBookmarks": ["true"],
}  # fmt: skip


DOCUMENTED = (b"failed to create typed patch object", b"strconv.Parse")  # k8s: answers 500 to these too


class Sent(NamedTuple):
    method: str
    path: str
    media: str
    body: bytes | None
    accept: str


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*at, key))


def changed(rng: random.Random, manifest: dict[str, Any]) -> dict[str, Any]:
    manifest = copy.deepcopy(manifest)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        *way, last = rng.choice(list(places(manifest)))
        parent = manifest
        for key in way:
            parent = parent[key]
        if rng.random() < 0.15:
            del parent[last]
        elif rng.random() < 0.1 and isinstance(parent, dict):
            parent[rng.choice(("x", "", "$patch", "$retainKeys", "$setElementOrder/containers", "a/b~c"))] = junk(rng)
        else:
            parent[last] = junk(rng)
        if not manifest:
            break
    return manifest


def junk(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(JUNK))


def json_patch(rng: random.Random, manifest: dict[str, Any]) -> Any:
    steps = []
    for _ in range(rng.randint(1, 4)):
        way = "/" + "/".join(str(key) for key in rng.choice(list(places(manifest))))
        steps.append({"op": rng.choice(("add", "remove", "replace", "move", "copy", "test", "x")), "path": way,
                      "from": rng.choice((way, "/metadata", "/spec", "")), "value": junk(rng)})  # fmt: skip
    return rng.choice((steps, steps, steps, steps[0], changed(rng, {"x": steps}).get("x"), []))


def encoded(rng: random.Random, value: Any, media: str) -> bytes:
    text = yaml.safe_dump(value) if "yaml" in media and rng.random() < 0.7 else json.dumps(value)
    data = bytearray(text.encode(errors="replace"))
    if rng.random() < 0.1 and data:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data)


def whole(kind: str, content: dict[str, Any], number: int) -> dict[str, Any]:
    api_version, _, name = kind.partition(" ")
    named = "things.fuzz.dev" if name == "CustomResourceDefinition" else f"n{number}"
    metadata = {"name": named, "labels": {"a": "b"}}
    return {"apiVersion": api_version, "kind": name, **content, "metadata": metadata}


def furnish(server: Sandbox) -> None:
    for bucket, kind, content in KINDS:
        for number in range(3):
            answer = server.request("POST", bucket, whole(kind, content, number))
            deadline = time.monotonic() + HANG_SECONDS
            while answer.code == 404 and time.monotonic() < deadline:  # the custom kind is not served yet
                answer = server.request("POST", bucket, whole(kind, content, number))
            assert answer.code in (201, 409), (kind, answer.body)


def request(rng: random.Random) -> Sent:
    bucket, kind, content = rng.choice(KINDS)
    manifest = whole(kind, content, rng.randrange(3))
    named = manifest["metadata"]["name"]
    method = rng.choice((*["GET", "POST", "POST", "PUT", "PUT", *["PATCH"] * 8] * 3, "DELETE"))
    part = rng.choice(PARTS) if rng.random() < 0.2 else ""
    path = bucket if method == "POST" and not part else f"{bucket}/{quote(named)}{part}"
    if rng.random() < 0.05:
        path = bucket
    if rng.random() < 0.03:
        path = path[: rng.randrange(1, len(path))] + rng.choice(("/", "%", "..", "//", "%00", "ü")) + "x"
    query = {key: rng.choice(values) for key, values in OPTIONS.items() if rng.random() < 0.06}
    media = rng.choice(PATCHES if method == "PATCH" else (*["application/json"] * 5, "application/yaml", "x/y"))
    if media == "application/apply-patch+yaml":
        query.setdefault("fieldManager", "m")
    value = json_patch(rng, manifest) if media == PATCHES[0] else changed(rng, manifest)
    if method == "DELETE":
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background", "preconditions": {"uid": "x"}}
        value = changed(rng, options)
    body = None if method == "GET" or (method == "DELETE" and rng.random() < 0.7) else encoded(rng, value, media)
    address = quote(path, safe="/%") + ("?" + urlencode(query) if query else "")
    return Sent(method, address, media, body, rng.choice(ACCEPT))


def check(sent: Sent, answer: Answer, server: Sandbox, already: int) -> None:
    assert b"internal error" not in answer.body, f"a fault of the server: {(sent, answer, server.log()[already:])}"
    assert answer.code < 500 or answer.code == 504 or any(word in answer.body for word in DOCUMENTED), (sent, answer)
    assert server.log()[already:] == "", (sent, server.log()[already:])


def prove(folder: Path, rng: random.Random, count: int, bug: str = "") -> dict[int, int]:
    """Send that many requests; return the count of each status code."""
    codes: dict[int, int] = {}
    with sandbox(folder, "--port", "0", bug=bug) as server:
        furnish(server)
        connection = server.endpoint.connection(timeout=HANG_SECONDS)
        for _ in range(count):
            sent = request(rng)
            already, token = len(server.log()), server.endpoint.token
            answer = ask(connection, *sent[:2], sent.body, sent.media, token=token, Accept=sent.accept)
            check(sent, answer, server, already)
            codes[answer.code] = codes.get(answer.code, 0) + 1
        connection.close()
        assert server.request("GET", "/readyz").code == 200
        assert server.memory() < 400 << 20
        server.end()
    return codes


def test_malformed_requests_never_cause_an_internal_error(
    tmp_path: Path, rng: random.Random, size: Callable[..., int]
) -> None:
    requests = size(20_000, test=500)
    codes = prove(tmp_path / "data", rng, requests)
    print(dict(sorted(codes.items())))
    expected = {200, 400, 404, 415, 422} | ({201} if requests >= 5_000 else set())  # few objects are created
    assert expected <= codes.keys(), "too little happened for a proof"


TRUSTING = """
from argosy.kube.patch.json_patch import _OPERATIONS, _PatchedDocument
_PatchedDocument.run = lambda self, operation: _OPERATIONS[operation["op"]](self, operation)
"""


@pytest.mark.tier("all", "prove")
def test_proof_detects_a_server_that_trusts_json_patch_steps(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(AssertionError, match=r"a fault of the server: .*json-patch.*in <lambda>.*(Key|Type)Error"):
        prove(tmp_path / "data", rng, 2_000, bug=TRUSTING)
