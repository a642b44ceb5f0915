"""What answers for a model: a file on a volume that can be run here, or a stub that says that it is one.

In: an InferenceService, the folder of volumes. Out: a Plan, or why there is nothing that could answer.
Never: reads a model.
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
# formats that could run here, and so are never played by a stub of a volume
RUNNABLE: Final = ("sklearn", "python")
LONGEST: Final = 63  # k8s: of a label of a name


@dataclass(frozen=True)
class Plan:
    host: str  # the first label of the name that it is reached by
    name: str
    source: str  # where the model is from, for people
    folder: str = ""  # of its artefact; empty: a stub


class NoModel(Exception):
    """Why nothing can answer, in a sentence."""


def plan_of(service: Manifest, host: str, volumes: Path) -> Plan:
    """Raises NoModel."""
    predictor, name = service["spec"]["predictor"], str(service["metadata"]["name"])
    uri = uri_of(predictor)
    if not uri.startswith("pvc://"):
        return Plan(host, name, uri or "a container of its own")
    folder = _folder(uri, str(service["metadata"]["namespace"]), volumes)
    if any((folder / each).is_file() for each in FILES):
        return Plan(host, name, uri, str(folder))
    kind = str(((predictor.get("model") or {}).get("modelFormat") or {}).get("name") or "")
    if kind in RUNNABLE:
        raise NoModel(f"{uri}: there is none of {', '.join(FILES)}; put one into {folder}")
    return Plan(host, name, uri)


def _folder(uri: str, namespace: str, volumes: Path) -> Path:
    """Of a volume, or in it: what leads out of it is refused."""
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
