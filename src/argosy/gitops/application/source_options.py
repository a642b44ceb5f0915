"""Tool options of a source: Helm, Kustomize, Jsonnet, directory, plug-in.

In: a block of a source in Argo CD's format. Out: frozen values, or a ManifestError that names the field. Never: chooses
the tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from argosy.kube.objects.field_reader import Fields


class Parameter(NamedTuple):
    name: str
    value: str
    is_text: bool = False  # argo: forceString


class FileParameter(NamedTuple):
    name: str
    path: str


class Variable(NamedTuple):
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
    parameters: tuple[Parameter, ...] = ()
    file_parameters: tuple[FileParameter, ...] = ()
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

    external: tuple[Variable, ...] = ()  # argo: extVars
    top_level: tuple[Variable, ...] = ()  # argo: tlas
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
    env: tuple[Variable, ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()


def helm_of(given: Fields) -> HelmOptions:
    return HelmOptions(
        release_name=given.text("releaseName"),
        value_files=given.all_texts("valueFiles"),
        values=given.text("values"),
        values_object=found.values if (found := given.optional("valuesObject")) else None,
        parameters=tuple(
            Parameter(each.text("name"), each.text("value"), each.flag("forceString"))
            for each in given.all_fields("parameters")
        ),
        file_parameters=tuple(
            FileParameter(each.text("name"), each.text("path")) for each in given.all_fields("fileParameters")
        ),
        version=given.text("version"),
        pass_credentials=given.flag("passCredentials"),
        ignore_missing_value_files=given.flag("ignoreMissingValueFiles"),
        skip_crds=given.flag("skipCrds"),
        skip_tests=given.flag("skipTests"),
        skip_schema_validation=given.flag("skipSchemaValidation"),
        namespace=given.text("namespace"),
        kube_version=given.text("kubeVersion"),
        api_versions=given.all_texts("apiVersions"),
    )


def kustomize_of(given: Fields) -> KustomizeOptions:
    return KustomizeOptions(
        name_prefix=given.text("namePrefix"),
        name_suffix=given.text("nameSuffix"),
        images=given.all_texts("images"),
        replicas=tuple((each.text("name"), each.count("count")) for each in given.all_fields("replicas")),
        common_labels=given.texts("commonLabels"),
        common_annotations=given.texts("commonAnnotations"),
        common_annotations_envsubst=given.flag("commonAnnotationsEnvsubst"),
        force_common_labels=given.flag("forceCommonLabels"),
        force_common_annotations=given.flag("forceCommonAnnotations"),
        label_without_selector=given.flag("labelWithoutSelector"),
        label_include_templates=given.flag("labelIncludeTemplates"),
        namespace=given.text("namespace"),
        components=given.all_texts("components"),
        ignore_missing_components=given.flag("ignoreMissingComponents"),
        patches=tuple(each.values for each in given.all_fields("patches")),
        version=given.text("version"),
        kube_version=given.text("kubeVersion"),
        api_versions=given.all_texts("apiVersions"),
    )


def directory_of(given: Fields) -> DirectoryOptions:
    jsonnet = given.fields("jsonnet")
    return DirectoryOptions(
        recurse=given.flag("recurse"),
        include=given.text("include"),
        exclude=given.text("exclude"),
        disable_extension_filter=given.flag("disableExtensionFilter"),
        jsonnet=JsonnetOptions(_variables(jsonnet, "extVars"), _variables(jsonnet, "tlas"), jsonnet.all_texts("libs")),
    )


def plugin_of(given: Fields) -> PluginOptions:
    parameters = tuple(each.values for each in given.all_fields("parameters"))
    return PluginOptions(given.text("name"), _variables(given, "env"), parameters)


def _variables(given: Fields, name: str) -> tuple[Variable, ...]:
    return tuple(Variable(each.text("name"), each.text("value"), each.flag("code")) for each in given.all_fields(name))
