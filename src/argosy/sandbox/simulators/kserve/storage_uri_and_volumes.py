"""Resolves the storage of a model: its URI, the volumes a Pod needs, and whether the model can be fetched.

In: a component of an InferenceService. Out: changes to a Pod spec, or why the model cannot be loaded. Never: reads a
model: whether an object exists in a bucket is decided by its name only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.kube.client import Cluster
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.well_known_kinds import PERSISTENT_VOLUME_CLAIM, SECRET
from argosy.sandbox.simulators.owner_references_and_marks import build_key, is_being_deleted

MISSING_MODEL_NAME: Final = "does-not-exist"  # as for images: a model with this name cannot be fetched
SECRET_NAME_ANNOTATION: Final = "serving.kserve.io/storageSecretName"
MODELS_MOUNT_PATH: Final = "/mnt/models"
INITIALIZER_NAME: Final = "storage-initializer"

StorageFields = dict[str, Any]


def read_storage_uri(component: StorageFields) -> str:
    model = component.get("model") or {}
    if model.get("storageUri"):
        return str(model["storageUri"])
    storage = model.get("storage") or {}
    if not storage.get("path"):
        return ""
    parameters = storage.get("parameters") or {}
    storage_type, bucket = parameters.get("type") or "s3", parameters.get("bucket") or "bucket"
    return f"{storage_type}://{bucket}/{str(storage['path']).lstrip('/')}"


def add_model_storage(pod_spec: StorageFields, uri: str) -> StorageFields:
    """Add the volumes and init containers that bring the model to the first container."""
    scheme, _, location = uri.partition("://")
    if scheme == "pvc":
        claim, _, path = location.partition("/")
        volume = {"name": "kserve-pvc-source", "persistentVolumeClaim": {"claimName": claim}}
        mount = {"name": volume["name"], "mountPath": MODELS_MOUNT_PATH, "readOnly": True}
        return _add_mount(pod_spec, volume, {**mount, **({"subPath": path.strip("/")} if path.strip("/") else {})})
    if scheme == "oci":
        volume = {"name": "modelcar", "emptyDir": {}}
        shared = _add_mount(pod_spec, volume, {"name": "modelcar", "mountPath": "/mnt", "readOnly": False})
        init_container = {"name": "modelcar-init", "image": location, "args": ["sh", "-c", "test -e /models"]}
        link = f"ln -s /proc/$$/root/models {MODELS_MOUNT_PATH} && sleep infinity"
        sidecar = {"name": "modelcar", "image": location, "args": ["sh", "-c", link]}
        return {
            **shared,
            "shareProcessNamespace": True,
            "initContainers": [*(shared.get("initContainers") or ()), init_container],
            "containers": [*shared["containers"], sidecar],
        }
    if not scheme or not location:
        return pod_spec
    volume = {"name": "kserve-provision-location", "emptyDir": {}}
    shared = _add_mount(pod_spec, volume, {"name": volume["name"], "mountPath": MODELS_MOUNT_PATH, "readOnly": True})
    initializer: StorageFields = {
        "name": INITIALIZER_NAME,
        "image": INITIALIZER_NAME,
        "args": [uri, MODELS_MOUNT_PATH],
        "volumeMounts": [{"name": volume["name"], "mountPath": MODELS_MOUNT_PATH}],
    }
    return {**shared, "initContainers": [*(shared.get("initContainers") or ()), initializer]}


def _add_mount(pod_spec: StorageFields, volume: StorageFields, mount: StorageFields) -> StorageFields:
    main_container, *sidecars = pod_spec["containers"]
    mounted = {**main_container, "volumeMounts": [*(main_container.get("volumeMounts") or ()), mount]}
    return {**pod_spec, "volumes": [*(pod_spec.get("volumes") or ()), volume], "containers": [mounted, *sidecars]}


async def find_storage_problem(service: Manifest, cache: InformerCache, cluster: Cluster) -> str:
    """Return why the predictor's model cannot be loaded, or an empty string."""
    predictor = service["spec"]["predictor"]
    uri, namespace = read_storage_uri(predictor), service["metadata"]["namespace"]
    if uri.startswith("pvc://"):
        claim = uri.removeprefix("pvc://").partition("/")[0]
        live = cache.get(build_key(PERSISTENT_VOLUME_CLAIM, namespace, claim))
        if live is None or is_being_deleted(live):
            return f'persistentvolumeclaim "{claim}" not found'
    key = ((predictor.get("model") or {}).get("storage") or {}).get("key")
    if key and (problem := await _find_secret_problem(service, str(key), cluster)):
        return problem
    if not uri.startswith("oci://") and MISSING_MODEL_NAME in uri.replace(":", "/").split("/"):
        return f"Failed to fetch model. No model found in {uri}."
    return ""


async def _find_secret_problem(service: Manifest, key: str, cluster: Cluster) -> str:
    name = get_annotation(service, SECRET_NAME_ANNOTATION) or "storage-config"
    secret = await cluster.get(build_key(SECRET, service["metadata"]["namespace"], name))
    if secret is None:
        return f'can\'t read storage secret {name}: secrets "{name}" not found'
    data: Mapping[str, str] = secret.get("data") or {}
    return "" if key in data else f"specified storage key {key} not found in storage secret {name}"


def uses_claim_or_secret_storage(service: Manifest) -> bool:
    """True if a new claim or Secret may be the one the service waits for."""
    predictor = (service.get("spec") or {}).get("predictor") or {}
    key = ((predictor.get("model") or {}).get("storage") or {}).get("key")
    return bool(key) or read_storage_uri(predictor).startswith("pvc://")
