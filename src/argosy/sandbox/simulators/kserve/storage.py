"""Resolves the storage of a model: its URI, the volumes a Pod needs, and whether the model can be fetched.

In: a component of an InferenceService. Out: changes to a Pod spec, or why the model cannot be loaded. Never: reads a
model: whether an object exists in a bucket is decided by its name only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.kube.client import Cluster
from argosy.kube.controller import Cache
from argosy.kube.objects import Manifest, annotation
from argosy.sandbox.simulators.constants import CLAIM, is_dying, own_key
from argosy.sandbox.simulators.kserve.constants import SECRET

MISSING: Final = "does-not-exist"  # as for images: a model with this name cannot be fetched
SECRET_NAME: Final = "serving.kserve.io/storageSecretName"  # noqa: S105 - an annotation's name
MODELS: Final = "/mnt/models"
INITIALIZER: Final = "storage-initializer"

Fields = dict[str, Any]


def uri_of(component: Fields) -> str:
    model = component.get("model") or {}
    if model.get("storageUri"):
        return str(model["storageUri"])
    storage = model.get("storage") or {}
    if not storage.get("path"):
        return ""
    kind = (storage.get("parameters") or {}).get("type") or "s3"
    return f"{kind}://{(storage.get('parameters') or {}).get('bucket') or 'bucket'}/{str(storage['path']).lstrip('/')}"


def with_model(pod: Fields, uri: str) -> Fields:
    """Add the volumes and init containers that bring the model to the first container."""
    scheme, _, place = uri.partition("://")
    if scheme == "pvc":
        claim, _, path = place.partition("/")
        volume = {"name": "kserve-pvc-source", "persistentVolumeClaim": {"claimName": claim}}
        mount = {"name": volume["name"], "mountPath": MODELS, "readOnly": True}
        return _mounted(pod, volume, {**mount, **({"subPath": path.strip("/")} if path.strip("/") else {})})
    if scheme == "oci":
        volume = {"name": "modelcar", "emptyDir": {}}
        shared = _mounted(pod, volume, {"name": "modelcar", "mountPath": "/mnt", "readOnly": False})
        first = {"name": "modelcar-init", "image": place, "args": ["sh", "-c", "test -e /models"]}
        link = f"ln -s /proc/$$/root/models {MODELS} && sleep infinity"
        car = {"name": "modelcar", "image": place, "args": ["sh", "-c", link]}
        return {
            **shared,
            "shareProcessNamespace": True,
            "initContainers": [*(shared.get("initContainers") or ()), first],
            "containers": [*shared["containers"], car],
        }
    if not scheme or not place:
        return pod
    volume = {"name": "kserve-provision-location", "emptyDir": {}}
    shared = _mounted(pod, volume, {"name": volume["name"], "mountPath": MODELS, "readOnly": True})
    fetching: Fields = {
        "name": INITIALIZER,
        "image": INITIALIZER,
        "args": [uri, MODELS],
        "volumeMounts": [{"name": volume["name"], "mountPath": MODELS}],
    }
    return {**shared, "initContainers": [*(shared.get("initContainers") or ()), fetching]}


def _mounted(pod: Fields, volume: Fields, mount: Fields) -> Fields:
    served, *others = pod["containers"]
    mounted = {**served, "volumeMounts": [*(served.get("volumeMounts") or ()), mount]}
    return {**pod, "volumes": [*(pod.get("volumes") or ()), volume], "containers": [mounted, *others]}


async def problem_of(service: Manifest, cache: Cache, cluster: Cluster) -> str:
    """Return why the predictor's model cannot be loaded, or an empty string."""
    predictor = service["spec"]["predictor"]
    uri, namespace = uri_of(predictor), service["metadata"]["namespace"]
    if uri.startswith("pvc://"):
        claim = uri.removeprefix("pvc://").partition("/")[0]
        live = cache.get(own_key(CLAIM, namespace, claim))
        if live is None or is_dying(live):
            return f'persistentvolumeclaim "{claim}" not found'
    key = ((predictor.get("model") or {}).get("storage") or {}).get("key")
    if key and (problem := await _secret_problem(service, str(key), cluster)):
        return problem
    if not uri.startswith("oci://") and MISSING in uri.replace(":", "/").split("/"):
        return f"Failed to fetch model. No model found in {uri}."
    return ""


async def _secret_problem(service: Manifest, key: str, cluster: Cluster) -> str:
    name = annotation(service, SECRET_NAME) or "storage-config"
    secret = await cluster.get(own_key(SECRET, service["metadata"]["namespace"], name))
    if secret is None:
        return f'can\'t read storage secret {name}: secrets "{name}" not found'
    data: Mapping[str, str] = secret.get("data") or {}
    return "" if key in data else f"specified storage key {key} not found in storage secret {name}"


def is_waiting_for_storage(service: Manifest) -> bool:
    """True if a new claim or Secret may be the one the service waits for."""
    predictor = (service.get("spec") or {}).get("predictor") or {}
    key = ((predictor.get("model") or {}).get("storage") or {}).get("key")
    return bool(key) or uri_of(predictor).startswith("pvc://")
