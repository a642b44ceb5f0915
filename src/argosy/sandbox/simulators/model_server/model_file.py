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

from argosy.sandbox.simulators.model_server.request_reply_types import RequestError

SCRIPT_NAME = "model.py"
PICKLE_NAMES = ("model.joblib", "model.pkl")
# the first bytes of a Git LFS pointer file
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
PACKAGES_BY_MODULE = {"sklearn": "scikit-learn", "joblib": "scikit-learn", "numpy": "numpy", "xgboost": "xgboost"}


class ModelLoadError(Exception):
    """The model cannot be loaded; the message says why."""


class FileModel:
    def __init__(self, predict: Callable[[Any], Any], platform: str) -> None:
        self._predict, self.platform = predict, platform

    def predict(self, instances: list[Any]) -> list[Any]:
        try:
            predictions = _convert_arrays(self._predict(instances))
        except Exception as error:
            raise RequestError(500, f"the model failed: {_describe_error(error)}") from error
        if not isinstance(predictions, list):
            raise RequestError(500, f"predict returned {type(predictions).__name__}; it must return a list")
        return predictions

    def complete(self, prompt: str, max_tokens: int | None) -> str:
        raise RequestError(400, "this is not a text model; use /v1/models/NAME:predict or /v2/models/NAME/infer")


def load_model(folder: str) -> FileModel:
    """Load the model of a folder. Raises ModelLoadError."""
    names = _list_file_names(folder)
    _reject_lfs_pointer(folder, names)
    if SCRIPT_NAME in names:
        return FileModel(_load_script(os.path.join(folder, SCRIPT_NAME)), "python")
    file_name = next((name for name in PICKLE_NAMES if name in names), None)
    if file_name is None:
        supported_names = ", ".join((SCRIPT_NAME, *PICKLE_NAMES))
        raise ModelLoadError(f"found none of {supported_names} in {folder}; put one there, and restart the model")
    return FileModel(_load_pickle(os.path.join(folder, file_name)), "sklearn")


def _reject_lfs_pointer(folder: str, names: list[str]) -> None:
    """Reject a Git LFS pointer: a model that was copied without `git lfs pull` is a short text file."""
    file_name = next((name for name in (SCRIPT_NAME, *PICKLE_NAMES) if name in names), None)
    if file_name is None:
        return
    try:
        with open(os.path.join(folder, file_name), "rb") as file:
            first_bytes = file.read(len(LFS_POINTER))
    except OSError:
        return  # loading it reports the error
    if first_bytes == LFS_POINTER:
        advice = "run git lfs pull where it comes from, copy the model again, and restart it"
        raise ModelLoadError(f"{file_name} is a Git LFS pointer, not the model itself; {advice}")


def _list_file_names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise ModelLoadError(f"{folder} cannot be read ({error.strerror}); let others read it: chmod a+rX") from error


def _load_script(file: str) -> Callable[[Any], Any]:
    try:
        predict = runpy.run_path(file, run_name="model").get("predict")
    except SystemExit as error:
        raise ModelLoadError(f"{SCRIPT_NAME} ends with exit code {error.code}; it must only define predict") from error
    except Exception as error:
        raise _build_load_error(SCRIPT_NAME, error) from error
    if not callable(predict):
        raise ModelLoadError(f"{SCRIPT_NAME} defines no predict; write: def predict(instances): return [...]")
    return predict  # type: ignore[no-any-return]


def _load_pickle(file: str) -> Callable[[Any], Any]:
    name = os.path.basename(file)
    try:
        if file.endswith(".joblib"):
            model = importlib.import_module("joblib").load(file)
        else:
            with open(file, "rb") as handle:
                model = pickle.load(handle)  # noqa: S301
    except Exception as error:
        raise _build_load_error(name, error) from error
    predict = getattr(model, "predict", None)
    if not callable(predict):
        raise ModelLoadError(f"{name} holds a {type(model).__name__}, which cannot predict")
    return predict  # type: ignore[no-any-return]


def _build_load_error(name: str, error: Exception) -> ModelLoadError:
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = PACKAGES_BY_MODULE.get(error.name.partition(".")[0], error.name.partition(".")[0])
        advice = f"install it beside argosy: pip install {package}"
        return ModelLoadError(f"{name} needs {package}, which is not installed; {advice}")
    return ModelLoadError(f"{name} cannot be loaded: {_describe_error(error)}")


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}" if str(error) else type(error).__name__


def _convert_arrays(value: Any) -> Any:
    """Convert arrays to lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_convert_arrays(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _convert_arrays(item) for name, item in value.items()}
    return value
