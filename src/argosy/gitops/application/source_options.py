"""Tool options of a source: Helm, Kustomize, Jsonnet, directory, plug-in.

In: a block of a source in Argo CD's format. Out: frozen values, or a ManifestError that names the field. Never: chooses
the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from argosy.kube.objects.strict_typed_field_reader import FieldReader


class HelmParameter(NamedTuple):
    name: str
    value: str
    is_text: bool = False  # argo: forceString


class HelmFileParameter(NamedTuple):
    name: str
    path: str


class ToolVariable(NamedTuple):
    name: str
    value: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class HelmOptions:
    """Options for Helm."""

    release_name: str = ""
    value_files: tuple[str, ...] = ()
    values: str = ""
    values_object: Mapping[str, Any] | None = None
    parameters: tuple[HelmParameter, ...] = ()
    file_parameters: tuple[HelmFileParameter, ...] = ()
    version: str = ""
    pass_credentials: bool = False
    ignore_missing_value_files: bool = False
    skip_crds: bool = False
    skip_tests: bool = False
    skip_schema_validation: bool = False
    namespace: str = ""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KustomizeOptions:
    """Options that are merged into a kustomization."""

    name_prefix: str = ""
    name_suffix: str = ""
    images: tuple[str, ...] = ()
    replicas: tuple[tuple[str, int], ...] = ()
    common_labels: Mapping[str, str] = field(default_factory=dict)
    common_annotations: Mapping[str, str] = field(default_factory=dict)
    common_annotations_envsubst: bool = False
    force_common_labels: bool = False
    force_common_annotations: bool = False
    label_without_selector: bool = False
    label_include_templates: bool = False
    namespace: str = ""
    components: tuple[str, ...] = ()
    ignore_missing_components: bool = False
    patches: tuple[Mapping[str, Any], ...] = ()
    version: str = ""
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonnetOptions:
    """Options for Jsonnet."""

    external: tuple[ToolVariable, ...] = ()  # argo: extVars
    top_level: tuple[ToolVariable, ...] = ()  # argo: tlas
    libs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """Selects the files of a directory source."""

    recurse: bool = False
    include: str = ""
    exclude: str = ""
    disable_extension_filter: bool = False
    jsonnet: JsonnetOptions = field(default_factory=JsonnetOptions)


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """Options for a plug-in."""

    name: str = ""
    env: tuple[ToolVariable, ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()


def read_helm_options(fields: FieldReader) -> HelmOptions:
    return HelmOptions(
        release_name=fields.read_text("releaseName"),
        value_files=fields.read_text_list("valueFiles"),
        values=fields.read_text("values"),
        values_object=values_object.values if (values_object := fields.find_map("valuesObject")) else None,
        parameters=tuple(
            HelmParameter(entry.read_text("name"), entry.read_text("value"), entry.read_bool("forceString"))
            for entry in fields.read_map_list("parameters")
        ),
        file_parameters=tuple(
            HelmFileParameter(entry.read_text("name"), entry.read_text("path"))
            for entry in fields.read_map_list("fileParameters")
        ),
        version=fields.read_text("version"),
        pass_credentials=fields.read_bool("passCredentials"),
        ignore_missing_value_files=fields.read_bool("ignoreMissingValueFiles"),
        skip_crds=fields.read_bool("skipCrds"),
        skip_tests=fields.read_bool("skipTests"),
        skip_schema_validation=fields.read_bool("skipSchemaValidation"),
        namespace=fields.read_text("namespace"),
        kube_version=fields.read_text("kubeVersion"),
        api_versions=fields.read_text_list("apiVersions"),
    )


def read_kustomize_options(fields: FieldReader) -> KustomizeOptions:
    return KustomizeOptions(
        name_prefix=fields.read_text("namePrefix"),
        name_suffix=fields.read_text("nameSuffix"),
        images=fields.read_text_list("images"),
        replicas=tuple(
            (entry.read_text("name"), entry.read_int("count")) for entry in fields.read_map_list("replicas")
        ),
        common_labels=fields.read_text_map("commonLabels"),
        common_annotations=fields.read_text_map("commonAnnotations"),
        common_annotations_envsubst=fields.read_bool("commonAnnotationsEnvsubst"),
        force_common_labels=fields.read_bool("forceCommonLabels"),
        force_common_annotations=fields.read_bool("forceCommonAnnotations"),
        label_without_selector=fields.read_bool("labelWithoutSelector"),
        label_include_templates=fields.read_bool("labelIncludeTemplates"),
        namespace=fields.read_text("namespace"),
        components=fields.read_text_list("components"),
        ignore_missing_components=fields.read_bool("ignoreMissingComponents"),
        patches=tuple(entry.values for entry in fields.read_map_list("patches")),
        version=fields.read_text("version"),
        kube_version=fields.read_text("kubeVersion"),
        api_versions=fields.read_text_list("apiVersions"),
    )


def read_directory_options(fields: FieldReader) -> DirectoryOptions:
    jsonnet = fields.read_map("jsonnet")
    return DirectoryOptions(
        recurse=fields.read_bool("recurse"),
        include=fields.read_text("include"),
        exclude=fields.read_text("exclude"),
        disable_extension_filter=fields.read_bool("disableExtensionFilter"),
        jsonnet=JsonnetOptions(
            _read_variables(jsonnet, "extVars"), _read_variables(jsonnet, "tlas"), jsonnet.read_text_list("libs")
        ),
    )


def read_plugin_options(fields: FieldReader) -> PluginOptions:
    parameters = tuple(parameter.values for parameter in fields.read_map_list("parameters"))
    return PluginOptions(fields.read_text("name"), _read_variables(fields, "env"), parameters)


def _read_variables(fields: FieldReader, name: str) -> tuple[ToolVariable, ...]:
    return tuple(
        ToolVariable(variable.read_text("name"), variable.read_text("value"), variable.read_bool("code"))
        for variable in fields.read_map_list(name)
    )
