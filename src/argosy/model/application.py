"""An Application as values: who it is, and where its manifests come from.

In: a manifest in Argo CD's words. Out: frozen values in ours, or a ManifestError that names the field.
Never: fetches, renders or judges anything; fields that it does not know are left alone, as the API server leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from argosy.model.errors import ManifestError


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
    external: tuple[Variable, ...] = ()  # argo: extVars
    top_level: tuple[Variable, ...] = ()  # argo: tlas
    libs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    recurse: bool = False
    include: str = ""
    exclude: str = ""
    disable_extension_filter: bool = False
    jsonnet: JsonnetOptions = field(default_factory=JsonnetOptions)


@dataclass(frozen=True, slots=True)
class PluginOptions:
    name: str = ""
    env: tuple[Variable, ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where manifests come from. A block that is not given is None: which blocks there are chooses the tool."""

    repo_url: str = ""
    path: str = ""
    ref: str = ""  # argo: targetRevision
    tag_prefix: str = ""
    chart: str = ""
    alias: str = ""  # argo: ref, the name by which value files of other sources reach this one
    name: str = ""
    helm: HelmOptions | None = None
    kustomize: KustomizeOptions | None = None
    directory: DirectoryOptions | None = None
    plugin: PluginOptions | None = None
    wire: Mapping[str, Any] = field(default_factory=dict)  # as it was written, for overrides to be merged into


class Destination(NamedTuple):
    server: str = ""
    name: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    name: str = ""
    namespace: str = ""
    project: str = "default"
    destination: Destination = field(default_factory=Destination)
    sources: tuple[Source, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def read_application(manifest: Mapping[str, Any], where: str = "") -> Application:
    fields = _Fields(manifest, where)
    metadata, spec = fields.fields("metadata"), fields.fields("spec")
    destination = spec.fields("destination")
    single = spec.optional("source")
    sources = spec.all_fields("sources") or ([single] if single else [])  # argo: sources win
    return Application(
        name=metadata.text("name"),
        namespace=metadata.text("namespace"),
        project=spec.text("project") or "default",
        destination=Destination(*(destination.text(each) for each in ("server", "name", "namespace"))),
        sources=tuple(map(_source, sources)),
        annotations=metadata.texts("annotations"),
    )


def read_source(wire: Mapping[str, Any], where: str = "") -> Source:
    return _source(_Fields(wire, where))


def _source(given: _Fields) -> Source:
    helm, kustomize = given.optional("helm"), given.optional("kustomize")
    directory, plugin = given.optional("directory"), given.optional("plugin")
    return Source(
        repo_url=given.text("repoURL"),
        path=given.text("path"),
        ref=given.text("targetRevision"),
        tag_prefix=given.text("tagPrefix"),
        chart=given.text("chart"),
        alias=given.text("ref"),
        name=given.text("name"),
        helm=_helm(helm) if helm else None,
        kustomize=_kustomize(kustomize) if kustomize else None,
        directory=_directory(directory) if directory else None,
        plugin=_plugin(plugin) if plugin else None,
        wire=given.values,
    )


def _helm(given: _Fields) -> HelmOptions:
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


def _kustomize(given: _Fields) -> KustomizeOptions:
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


def _directory(given: _Fields) -> DirectoryOptions:
    jsonnet = given.fields("jsonnet")
    return DirectoryOptions(
        recurse=given.flag("recurse"),
        include=given.text("include"),
        exclude=given.text("exclude"),
        disable_extension_filter=given.flag("disableExtensionFilter"),
        jsonnet=JsonnetOptions(
            _variables(jsonnet, "extVars"), _variables(jsonnet, "tlas"), jsonnet.all_texts("libs")
        ),
    )


def _plugin(given: _Fields) -> PluginOptions:
    parameters = tuple(each.values for each in given.all_fields("parameters"))
    return PluginOptions(given.text("name"), _variables(given, "env"), parameters)


def _variables(given: _Fields, name: str) -> tuple[Variable, ...]:
    return tuple(
        Variable(each.text("name"), each.text("value"), each.flag("code")) for each in given.all_fields(name)
    )


class _Fields:
    """A map of the manifest, read field by field; what is absent or null is empty."""

    def __init__(self, values: Any, where: str, at: str = "") -> None:
        if not isinstance(values, Mapping):
            raise ManifestError(f"{at or 'an Application'} must be a map of fields; correct it", where=where)
        self.values, self._where, self._at = values, where, at

    def text(self, name: str) -> str:
        return str(self._checked(name, str, "a text; put it in quotes") or "")

    def flag(self, name: str) -> bool:
        return bool(self._checked(name, bool, "true or false"))

    def count(self, name: str) -> int:
        value = self.values.get(name)
        if isinstance(value, str) and value.isdecimal():  # argo: both forms are taken
            return int(value)
        return int(self._checked(name, int, "a whole number") or 0)

    def texts(self, name: str) -> Mapping[str, str]:
        given = self.fields(name)
        return {each: given.text(each) for each in given.values}

    def all_texts(self, name: str) -> tuple[str, ...]:
        found = self._checked(name, list, "a list") or ()
        for each in found:
            if not isinstance(each, str):
                raise self._wrong(name, "a list of texts; put each in quotes")
        return tuple(found)

    def fields(self, name: str) -> _Fields:
        return self.optional(name) or _Fields({}, self._where, self._path(name))

    def optional(self, name: str) -> _Fields | None:
        value = self.values.get(name)
        return None if value is None else _Fields(value, self._where, self._path(name))

    def all_fields(self, name: str) -> list[_Fields]:
        found = self._checked(name, list, "a list") or ()
        return [_Fields(each, self._where, f"{self._path(name)}[{place}]") for place, each in enumerate(found)]

    def _checked(self, name: str, kind: type, what: str) -> Any:
        value = self.values.get(name)
        if value is not None and type(value) is not kind:
            raise self._wrong(name, what)
        return value

    def _wrong(self, name: str, what: str) -> ManifestError:
        return ManifestError(f"{self._path(name)} must be {what}", where=self._where)

    def _path(self, name: str) -> str:
        return f"{self._at}.{name}" if self._at else name
