"""The flags of `argosy render` that set fields of an Application's source, with Argo CD's names.

In: the value of each flag. Out: a source in Argo CD's format. Never: interprets a field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from argosy.errors import UserError

FlagValues = Mapping[str, Any]  # typed values, by flag


class SourceFlag(NamedTuple):
    name: str
    placeholder: str  # placeholder of its value in the help; empty for a switch
    field: str  # dotted path in a source
    value_format: str  # how the value is written there
    help_text: str

    @property
    def is_repeated(self) -> bool:
        return self.value_format not in ("switch", "text")


FLAGS: Final = tuple(
    SourceFlag(*row)
    for row in (
        ("--release-name", "NAME", "helm.releaseName", "text", "Helm: release name (default: the Application's name)"),
        ("--values", "FILE", "helm.valueFiles", "texts", "Helm: values file, relative to the chart; repeatable"),
        ("--helm-set", "NAME=VALUE", "helm.parameters", "parameter", "Helm: set a value; repeatable"),
        ("--helm-set-string", "NAME=VALUE", "helm.parameters", "text parameter", "Helm: set a value as a string"),
        ("--helm-set-file", "NAME=FILE", "helm.fileParameters", "file parameter", "Helm: set a value from a file"),
        ("--ignore-missing-value-files", "", "helm.ignoreMissingValueFiles", "switch", "Helm: ignore missing --values"),
        ("--helm-skip-crds", "", "helm.skipCrds", "switch", "Helm: skip the CRDs in crds/"),
        ("--helm-skip-tests", "", "helm.skipTests", "switch", "Helm: skip tests"),
        ("--helm-skip-schema-validation", "", "helm.skipSchemaValidation", "switch", "Helm: skip values.schema.json"),
        ("--helm-namespace", "NAME", "helm.namespace", "text", "Helm: namespace of the release"),
        ("--helm-kube-version", "VERSION", "helm.kubeVersion", "text", "Helm: Kubernetes version"),
        ("--helm-api-versions", "API", "helm.apiVersions", "texts", "Helm: API version of the cluster; repeatable"),
        ("--helm-pass-credentials", "", "helm.passCredentials", "switch", "Helm: pass credentials to all domains"),
        ("--helm-version", "VERSION", "helm.version", "text", "Helm: version; only v3 is supported"),
        ("--nameprefix", "TEXT", "kustomize.namePrefix", "text", "Kustomize: name prefix"),
        ("--namesuffix", "TEXT", "kustomize.nameSuffix", "text", "Kustomize: name suffix"),
        ("--kustomize-image", "IMAGE", "kustomize.images", "texts", "Kustomize: NAME=NEW:TAG or NEW:TAG; repeatable"),
        ("--kustomize-replica", "NAME=COUNT", "kustomize.replicas", "count", "Kustomize: replica count; repeatable"),
        ("--kustomize-namespace", "NAME", "kustomize.namespace", "text", "Kustomize: namespace of all objects"),
        ("--kustomize-common-label", "NAME=VALUE", "kustomize.commonLabels", "map", "Kustomize: common label"),
        ("--kustomize-common-annotation", "NAME=VALUE", "kustomize.commonAnnotations", "map", "Kustomize: annotation"),
        ("--kustomize-force-common-label", "", "kustomize.forceCommonLabels", "switch", "Kustomize: overwrite labels"),
        (
            "--kustomize-force-common-annotation",
            "",
            "kustomize.forceCommonAnnotations",
            "switch",
            "Kustomize: overwrite annotations",
        ),
        (
            "--kustomize-label-without-selector",
            "",
            "kustomize.labelWithoutSelector",
            "switch",
            "Kustomize: apply common labels to all objects, but not to selectors",
        ),
        (
            "--kustomize-label-include-templates",
            "",
            "kustomize.labelIncludeTemplates",
            "switch",
            "Kustomize: with --kustomize-label-without-selector, also apply labels to Pod templates",
        ),
        (
            "--ignore-missing-components",
            "",
            "kustomize.ignoreMissingComponents",
            "switch",
            "Kustomize: ignore missing components",
        ),
        ("--kustomize-version", "VERSION", "kustomize.version", "text", "Kustomize: a version in the settings"),
        ("--kustomize-kube-version", "VERSION", "kustomize.kubeVersion", "text", "Kustomize: version for helmCharts"),
        ("--kustomize-api-versions", "API", "kustomize.apiVersions", "texts", "Kustomize: API for Helm; repeatable"),
        ("--directory-recurse", "", "directory.recurse", "switch", "plain files: include subfolders"),
        ("--directory-include", "GLOB", "directory.include", "text", "plain files: include only these"),
        ("--directory-exclude", "GLOB", "directory.exclude", "text", "plain files: exclude these"),
        (
            "--directory-disable-extension-filter",
            "",
            "directory.disableExtensionFilter",
            "switch",
            "plain files: include files with any extension",
        ),
        ("--jsonnet-ext-var-str", "NAME=VALUE", "directory.jsonnet.extVars", "variable", "Jsonnet: external variable"),
        ("--jsonnet-ext-var-code", "NAME=CODE", "directory.jsonnet.extVars", "code", "Jsonnet: variable as code"),
        ("--jsonnet-tla-str", "NAME=VALUE", "directory.jsonnet.tlas", "variable", "Jsonnet: top-level argument"),
        ("--jsonnet-tla-code", "NAME=CODE", "directory.jsonnet.tlas", "code", "Jsonnet: argument as code"),
        ("--jsonnet-libs", "DIR", "directory.jsonnet.libs", "texts", "Jsonnet: library folder; repeatable"),
        ("--config-management-plugin", "NAME", "plugin.name", "text", "the plug-in to use"),
        ("--plugin-env", "NAME=VALUE", "plugin.env", "variable", "plug-in: a variable; repeatable"),
    )
)


def with_options(wire: Mapping[str, Any], flag_values: FlagValues) -> dict[str, Any]:
    """Return the source with typed values replacing or extending its own."""
    changed = dict(wire)
    for flag in FLAGS:
        if (value := flag_values.get(flag.name)) not in (None, False, []):
            _set_field(changed, flag, value)
    return changed


def _set_field(source: dict[str, Any], flag: SourceFlag, value: Any) -> None:
    *parents, name = flag.field.split(".")
    container = source
    for entry in parents:
        container[entry] = dict(container.get(entry) or {})
        container = container[entry]
    match flag.value_format:
        case "switch" | "text":
            container[name] = value
        case "texts":
            container[name] = [*(container.get(name) or ()), *value]
        case "map":
            container[name] = {**(container.get(name) or {}), **dict(_split_pair(flag, entry) for entry in value)}
        case _:
            entries = [_build_entry(flag, *_split_pair(flag, entry)) for entry in value]
            container[name] = _replace_by_name(container.get(name) or (), entries)


def _replace_by_name(old: Iterable[Any], new: list[dict[str, Any]]) -> list[Any]:
    names = {entry["name"] for entry in new}
    return [*(entry for entry in old if not (isinstance(entry, dict) and entry.get("name") in names)), *new]


def _split_pair(flag: SourceFlag, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UserError(
            f"{text!r} is not {flag.placeholder}; use a name, an equals sign and the value", where=flag.name
        )
    return name, value


def _build_entry(flag: SourceFlag, name: str, value: str) -> dict[str, Any]:
    match flag.value_format:
        case "text parameter":
            return {"name": name, "value": value, "forceString": True}
        case "file parameter":
            return {"name": name, "path": value}
        case "code":
            return {"name": name, "value": value, "code": True}
        case "count":
            if not value.isdecimal():
                raise UserError(f"{value!r} is not an integer; pass one after the equals sign", where=flag.name)
            return {"name": name, "count": int(value)}
    return {"name": name, "value": value}
