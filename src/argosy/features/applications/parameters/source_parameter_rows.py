"""Images, parameters and values of the sources of an Application, with the field that sets them.

In: sources. Out: rows. Never: renders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from argosy.gitops.application import Application
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import dump_yaml

PLUGIN_ORIGIN: Final = "the plugin's environment in the Application"


@dataclass(frozen=True, slots=True)
class SourceParameter:
    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class SourceParameters:
    """Parameters of one source."""

    number: int
    name: str
    repository: str
    path: str
    ref: str
    tool: str
    rows: tuple[SourceParameter, ...]
    images: tuple[str, ...] = ()  # running images
    patches: tuple[str, ...] = ()
    values: str = ""


def list_source_parameters(app: Application) -> tuple[SourceParameters, ...]:
    """argo: Running images are known for the whole Application, so the first source lists them."""
    image_list: Any = as_mapping(app.status.get("summary")).get("images")
    images = tuple(str(item) for item in image_list) if isinstance(image_list, list) else ()
    types = _list_source_types(app)
    all_parameters = []
    for index, source in enumerate(app.sources):
        wire = source.wire
        tool = types[index] if index < len(types) else ""
        all_parameters.append(
            SourceParameters(
                index + 1,
                str(wire.get("name") or source.alias or ""),
                source.repo_url,
                source.path or source.chart,
                source.ref or "HEAD",
                tool or _guess_tool(wire),
                tuple(_list_rows(wire)),
                images if not index else (),
                tuple(dump_yaml(item) for item in as_mappings(as_mapping(wire.get("kustomize")).get("patches"))),
                _render_helm_values(as_mapping(wire.get("helm"))),
            )
        )
    return tuple(all_parameters)


def _list_source_types(app: Application) -> list[str]:
    source_types = app.status.get("sourceTypes")
    return (
        [str(source_type) for source_type in source_types]
        if isinstance(source_types, list)
        else [str(app.status.get("sourceType") or "")]
    )


def _guess_tool(wire: Mapping[str, Any]) -> str:
    return next((name.capitalize() for name in ("helm", "kustomize", "plugin", "directory") if wire.get(name)), "")


def _list_rows(wire: Mapping[str, Any]) -> Iterator[SourceParameter]:
    yield from _list_kustomize_rows(as_mapping(wire.get("kustomize")))
    yield from _list_helm_rows(as_mapping(wire.get("helm")))
    directory = as_mapping(wire.get("directory"))
    for name in sorted(directory):
        yield SourceParameter(name, _render_value(directory[name]), "spec.source.directory")
    for variable in as_mappings(as_mapping(wire.get("plugin")).get("env")):
        yield SourceParameter(str(variable.get("name")), _render_value(variable.get("value")), PLUGIN_ORIGIN)


def _list_kustomize_rows(kustomize: Mapping[str, Any]) -> Iterator[SourceParameter]:
    origin = "spec.source.kustomize"
    for image in kustomize.get("images") or ():
        name, _, value = str(image).partition("=")
        yield SourceParameter(f"image {name.partition(':')[0]}", value or str(image), f"{origin}.images")
    for replica in as_mappings(kustomize.get("replicas")):
        yield SourceParameter(
            f"replicas {replica.get('name')}", _render_value(replica.get("count")), f"{origin}.replicas"
        )
    for name in ("commonLabels", "commonAnnotations"):
        for key, value in sorted(as_mapping(kustomize.get(name)).items()):
            yield SourceParameter(f"{name} {key}", _render_value(value), f"{origin}.{name}")
    for name in ("namePrefix", "nameSuffix", "namespace", "version", "components"):
        if kustomize.get(name):
            yield SourceParameter(name, _render_value(kustomize[name]), f"{origin}.{name}")


def _list_helm_rows(helm: Mapping[str, Any]) -> Iterator[SourceParameter]:
    origin = "spec.source.helm"
    for parameter in as_mappings(helm.get("parameters")):
        yield SourceParameter(str(parameter.get("name")), _render_value(parameter.get("value")), f"{origin}.parameters")
    for parameter in as_mappings(helm.get("fileParameters")):
        yield SourceParameter(
            str(parameter.get("name")), _render_value(parameter.get("path")), f"{origin}.fileParameters"
        )
    for name in ("valueFiles", "releaseName", "version", "passCredentials", "skipCrds"):
        if helm.get(name):
            yield SourceParameter(name, _render_value(helm[name]), f"{origin}.{name}")


def _render_helm_values(helm: Mapping[str, Any]) -> str:
    if helm.get("valuesObject"):
        return dump_yaml(as_mapping(helm["valuesObject"]))
    return str(helm.get("values") or "")


def _render_value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()
