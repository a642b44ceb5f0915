"""Images, parameters and values of the sources of an Application, with the field that sets them.

In: sources. Out: rows. Never: renders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from argosy.gitops.application import Application
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.objects import dump

OF_PLUGIN: Final = "the plugin's environment in the Application"


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of one source."""

    number: int
    name: str
    repository: str
    path: str
    ref: str
    tool: str
    rows: tuple[Parameter, ...]
    images: tuple[str, ...] = ()  # running images
    patches: tuple[str, ...] = ()
    values: str = ""


def parameters_of(app: Application) -> tuple[Parameters, ...]:
    """argo: Running images are known for the whole Application, so the first source lists them."""
    found: Any = mapping(app.status.get("summary")).get("images")
    images = tuple(str(each) for each in found) if isinstance(found, list) else ()
    types = _types(app)
    made = []
    for place, source in enumerate(app.sources):
        wire = source.wire
        tool = types[place] if place < len(types) else ""
        made.append(
            Parameters(
                place + 1,
                str(wire.get("name") or source.alias or ""),
                source.repo_url,
                source.path or source.chart,
                source.ref or "HEAD",
                tool or _tool(wire),
                tuple(_rows(wire)),
                images if not place else (),
                tuple(dump(each) for each in mappings(mapping(wire.get("kustomize")).get("patches"))),
                _values(mapping(wire.get("helm"))),
            )
        )
    return tuple(made)


def _types(app: Application) -> list[str]:
    many = app.status.get("sourceTypes")
    return [str(each) for each in many] if isinstance(many, list) else [str(app.status.get("sourceType") or "")]


def _tool(wire: Mapping[str, Any]) -> str:
    return next((name.capitalize() for name in ("helm", "kustomize", "plugin", "directory") if wire.get(name)), "")


def _rows(wire: Mapping[str, Any]) -> Iterator[Parameter]:
    yield from _of_kustomize(mapping(wire.get("kustomize")))
    yield from _of_helm(mapping(wire.get("helm")))
    directory = mapping(wire.get("directory"))
    for name in sorted(directory):
        yield Parameter(name, _text(directory[name]), "spec.source.directory")
    for each in mappings(mapping(wire.get("plugin")).get("env")):
        yield Parameter(str(each.get("name")), _text(each.get("value")), OF_PLUGIN)


def _of_kustomize(kustomize: Mapping[str, Any]) -> Iterator[Parameter]:
    origin = "spec.source.kustomize"
    for image in kustomize.get("images") or ():
        name, _, value = str(image).partition("=")
        yield Parameter(f"image {name.partition(':')[0]}", value or str(image), f"{origin}.images")
    for each in mappings(kustomize.get("replicas")):
        yield Parameter(f"replicas {each.get('name')}", _text(each.get("count")), f"{origin}.replicas")
    for name in ("commonLabels", "commonAnnotations"):
        for key, value in sorted(mapping(kustomize.get(name)).items()):
            yield Parameter(f"{name} {key}", _text(value), f"{origin}.{name}")
    for name in ("namePrefix", "nameSuffix", "namespace", "version", "components"):
        if kustomize.get(name):
            yield Parameter(name, _text(kustomize[name]), f"{origin}.{name}")


def _of_helm(helm: Mapping[str, Any]) -> Iterator[Parameter]:
    origin = "spec.source.helm"
    for each in mappings(helm.get("parameters")):
        yield Parameter(str(each.get("name")), _text(each.get("value")), f"{origin}.parameters")
    for each in mappings(helm.get("fileParameters")):
        yield Parameter(str(each.get("name")), _text(each.get("path")), f"{origin}.fileParameters")
    for name in ("valueFiles", "releaseName", "version", "passCredentials", "skipCrds"):
        if helm.get(name):
            yield Parameter(name, _text(helm[name]), f"{origin}.{name}")


def _values(helm: Mapping[str, Any]) -> str:
    if helm.get("valuesObject"):
        return dump(mapping(helm["valuesObject"]))
    return str(helm.get("values") or "")


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()
