"""Every error class of argosy survives pickling and copying without loss."""

from __future__ import annotations

import copy
import inspect
import pickle
import pkgutil
from importlib import import_module

import pytest

import argosy
from argosy.errors import ArgosyError, ClusterError, SourceError, UserError
from argosy.kube.resource_key import ResourceKey

for module in pkgutil.walk_packages(argosy.__path__, "argosy."):
    if not module.name.endswith("__main__"):
        try:
            import_module(module.name)
        except ModuleNotFoundError as missing:  # an optional library that is not installed
            assert not str(missing.name).startswith("argosy")


def family(kind: type[ArgosyError]) -> list[type[ArgosyError]]:
    return [kind, *(one for child in kind.__subclasses__() for one in family(child))]


CLASSES = [kind for kind in dict.fromkeys(family(ArgosyError)) if kind.__module__.startswith("argosy.")]
ANSWERS = {"key": ResourceKey("apps", "Deployment", "default", "web"), "code": 418, "line": 7, "details": {"a": [1]}}
ANSWERS |= {"retry_after": 2.0, "conflicts": (), "requests": ()}


def build_error(kind: type[ArgosyError]) -> ArgosyError:
    """Build an error with every argument that its constructor takes."""
    args, named = [], {}
    if kind.__init__ is Exception.__init__:
        return kind("what happened")
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if name == "self":
            continue
        value = ANSWERS.get(name, f"the {name}")
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = value
        elif parameter.kind is not parameter.VAR_KEYWORD:
            args.append(value)
    return kind(*args, **named)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_error_is_unchanged_by_pickle_and_copy(kind: type[ArgosyError]) -> None:
    error = build_error(kind)
    error.add_note("a note")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind
        assert (str(other), other.args) == (str(error), error.args)
        assert vars(other) == vars(error)


def test_error_classes_of_all_families_are_covered() -> None:
    assert {UserError, ClusterError, SourceError} < set(CLASSES)
    assert len(CLASSES) > 20
