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
from argosy.sandbox.simulators.constants import letters
from argosy.sandbox.simulators.kserve.storage import uri_of

FILES: Final = ("model.py", "model.joblib", "model.pkl")
# formats that can run here; a volume without a model file is then an error, not a stub
RUNNABLE: Final = ("sklearn", "python")
LONGEST: Final = 63  # k8s: maximum length of a DNS label


@dataclass(frozen=True)
class Plan:
    host: str  # first label of its hostname
    name: str
    source: str  # location of the model, for people
    folder: str = ""  # folder of the model file; empty: a stub


class NoModel(Exception):
    """Nothing can serve the model; the message says why."""


def plan_of(service: Manifest, host: str, volumes: Path) -> Plan:
    """Find the model file of an InferenceService. Raises ModelNotFoundError."""
    predictor, name = service["spec"]["predictor"], str(service["metadata"]["name"])
    uri = uri_of(predictor)
    if not uri.startswith("pvc://"):
        return Plan(host, name, uri or "a container of its own")
    folder = _folder(uri, str(service["metadata"]["namespace"]), volumes)
    if any((folder / each).is_file() for each in FILES):
        return Plan(host, name, uri, str(folder))
    kind = str(((predictor.get("model") or {}).get("modelFormat") or {}).get("name") or "")
    if kind in RUNNABLE:
        raise NoModel(f"{uri}: found none of {', '.join(FILES)}; put one into {folder}")
    return Plan(host, name, uri)


def _folder(uri: str, namespace: str, volumes: Path) -> Path:
    """Resolve a path in a volume to a folder; a path that leads out of the volume is rejected."""
    claim, _, path = uri.removeprefix("pvc://").partition("/")
    volume = volumes / namespace / claim
    found = os.path.normpath(volume / path)
    real = os.path.realpath(found)
    inside = os.path.realpath(volume)
    if claim in ("", ".", "..") or not f"{real}/".startswith(f"{inside}/"):
        raise NoModel(f"{uri} leads out of its volume; name a path in it")
    return Path(found) if os.path.isdir(found) else Path(found).parent if os.path.isfile(found) else Path(found)


def host_of(namespace: str, name: str) -> str:
    """kserve: name and namespace, as in the host of a Route."""
    whole = f"{name}-{namespace}"
    return whole if len(whole) <= LONGEST else f"{whole[:52]}-{letters(f'{namespace}/{name}', 10)}"
