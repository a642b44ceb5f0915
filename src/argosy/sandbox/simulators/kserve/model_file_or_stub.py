"""Resolves what serves a model: a file on a volume that can run here, or a stub.

In: an InferenceService, the folder of volumes. Out: a ModelSource, or the reason why nothing can serve it. Never: reads
a model.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.kserve.storage_uri_and_volumes import read_storage_uri
from argosy.sandbox.simulators.owner_references_and_marks import hash_to_name_suffix

MODEL_FILES: Final = ("model.py", "model.joblib", "model.pkl")
# formats that can run here; a volume without a model file is then an error, not a stub
RUNNABLE_FORMATS: Final = ("sklearn", "python")
MAX_LABEL_CHARACTERS: Final = 63  # k8s: maximum length of a DNS label


@dataclass(frozen=True)
class ModelSource:
    host: str  # first label of its hostname
    name: str
    location: str  # location of the model, for people
    folder: str = ""  # folder of the model file; empty: a stub


class ModelNotFoundError(Exception):
    """Nothing can serve the model; the message says why."""


def resolve_model_source(service: Manifest, host: str, volumes: Path) -> ModelSource:
    """Find the model file of an InferenceService. Raises ModelNotFoundError."""
    predictor, name = service["spec"]["predictor"], str(service["metadata"]["name"])
    uri = read_storage_uri(predictor)
    if not uri.startswith("pvc://"):
        return ModelSource(host, name, uri or "a container of its own")
    folder = _resolve_folder(uri, str(service["metadata"]["namespace"]), volumes)
    if any((folder / file_name).is_file() for file_name in MODEL_FILES):
        return ModelSource(host, name, uri, str(folder))
    model_format = str(((predictor.get("model") or {}).get("modelFormat") or {}).get("name") or "")
    if model_format in RUNNABLE_FORMATS:
        raise ModelNotFoundError(f"{uri}: found none of {', '.join(MODEL_FILES)}; put one into {folder}")
    return ModelSource(host, name, uri)


def _resolve_folder(uri: str, namespace: str, volumes: Path) -> Path:
    """Resolve a path in a volume to a folder; a path that leads out of the volume is rejected."""
    claim, _, path = uri.removeprefix("pvc://").partition("/")
    volume = volumes / namespace / claim
    target = os.path.normpath(volume / path)
    real_target = os.path.realpath(target)
    real_volume = os.path.realpath(volume)
    if claim in ("", ".", "..") or not f"{real_target}/".startswith(f"{real_volume}/"):
        raise ModelNotFoundError(f"{uri} leads out of its volume; name a path in it")
    return Path(target) if os.path.isdir(target) else Path(target).parent if os.path.isfile(target) else Path(target)


def build_host_label(namespace: str, name: str) -> str:
    """kserve: name and namespace, as in the host of a Route."""
    label = f"{name}-{namespace}"
    return (
        label
        if len(label) <= MAX_LABEL_CHARACTERS
        else f"{label[:52]}-{hash_to_name_suffix(f'{namespace}/{name}', 10)}"
    )
