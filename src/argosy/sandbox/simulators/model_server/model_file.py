"""Loads a model file from a volume: a Python script or a pickle. Both are code, and this confined process may run them.

In: a folder. Out: a FileModel, or the reason why it cannot be loaded. Never: runs in argosy's own process.
"""

from __future__ import annotations

import importlib
import os
import pickle  # models are pickles; this process is confined and has nothing to steal
import runpy
from collections.abc import Callable
from typing import Any

from argosy.sandbox.simulators.model_server.messages import Refusal

SCRIPT = "model.py"
PICKLES = ("model.joblib", "model.pkl")
# the first bytes of a Git LFS pointer file
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
NEEDED = {"sklearn": "scikit-learn", "joblib": "scikit-learn", "numpy": "numpy", "xgboost": "xgboost"}


class Unloadable(Exception):
    """The model cannot be loaded; the message says why."""


class Artefact:
    def __init__(self, predict: Callable[[Any], Any], platform: str) -> None:
        self._predict, self.platform = predict, platform

    def predict(self, instances: list[Any]) -> list[Any]:
        try:
            found = _plain(self._predict(instances))
        except Exception as error:
            raise Refusal(500, f"the model failed: {_told(error)}") from error
        if not isinstance(found, list):
            raise Refusal(500, f"predict returned {type(found).__name__}; it must return a list")
        return found

    def complete(self, prompt: str, most: int | None) -> str:
        raise Refusal(400, "this is not a text model; use /v1/models/NAME:predict or /v2/models/NAME/infer")


def load(folder: str) -> Artefact:
    """Load the model of a folder. Raises ModelLoadError."""
    names = _names(folder)
    _refuse_pointer(folder, names)
    if SCRIPT in names:
        return Artefact(_from_script(os.path.join(folder, SCRIPT)), "python")
    chosen = next((name for name in PICKLES if name in names), None)
    if chosen is None:
        known = ", ".join((SCRIPT, *PICKLES))
        raise Unloadable(f"found none of {known} in {folder}; put one there, and restart the model")
    return Artefact(_from_pickle(os.path.join(folder, chosen)), "sklearn")


def _refuse_pointer(folder: str, names: list[str]) -> None:
    """Reject a Git LFS pointer: a model that was copied without `git lfs pull` is a short text file."""
    chosen = next((name for name in (SCRIPT, *PICKLES) if name in names), None)
    if chosen is None:
        return
    try:
        with open(os.path.join(folder, chosen), "rb") as file:
            start = file.read(len(LFS_POINTER))
    except OSError:
        return  # loading it reports the error
    if start == LFS_POINTER:
        advice = "run git lfs pull where it comes from, copy the model again, and restart it"
        raise Unloadable(f"{chosen} is a Git LFS pointer, not the model itself; {advice}")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise Unloadable(f"{folder} cannot be read ({error.strerror}); let others read it: chmod a+rX") from error


def _from_script(file: str) -> Callable[[Any], Any]:
    try:
        found = runpy.run_path(file, run_name="model").get("predict")
    except SystemExit as error:
        raise Unloadable(f"{SCRIPT} ends with exit code {error.code}; it must only define predict") from error
    except Exception as error:
        raise _unloadable(SCRIPT, error) from error
    if not callable(found):
        raise Unloadable(f"{SCRIPT} defines no predict; write: def predict(instances): return [...]")
    return found  # type: ignore[no-any-return]


def _from_pickle(file: str) -> Callable[[Any], Any]:
    name = os.path.basename(file)
    try:
        if file.endswith(".joblib"):
            model = importlib.import_module("joblib").load(file)
        else:
            with open(file, "rb") as handle:
                model = pickle.load(handle)  # noqa: S301
    except Exception as error:
        raise _unloadable(name, error) from error
    found = getattr(model, "predict", None)
    if not callable(found):
        raise Unloadable(f"{name} holds a {type(model).__name__}, which cannot predict")
    return found  # type: ignore[no-any-return]


def _unloadable(name: str, error: Exception) -> Unloadable:
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = NEEDED.get(error.name.partition(".")[0], error.name.partition(".")[0])
        advice = f"install it beside argosy: pip install {package}"
        return Unloadable(f"{name} needs {package}, which is not installed; {advice}")
    return Unloadable(f"{name} cannot be loaded: {_told(error)}")


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}" if str(error) else type(error).__name__


def _plain(value: Any) -> Any:
    """Convert arrays to lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value
