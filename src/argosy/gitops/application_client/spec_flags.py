"""Builds and changes Application manifests from flags with Argo CD's names.

In: parsed flags, the current Application. Out: its manifest. Never: writes it; changes fields that no flag names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.annotations import RESOURCES_FINALIZER
from argosy.errors import UserError
from argosy.gitops.workspace.helm_kustomize_render_flags import FLAGS, SourceFlag, with_options
from argosy.kube.well_known_kinds import ARGOPROJ_API_VERSION

IN_CLUSTER_SERVER: Final = "https://kubernetes.default.svc"
AUTOMATED_POLICIES: Final = ("automated", "auto", "automatic")
VALUES_LITERAL_FLAG: Final = "--values-literal-file"  # the file's content
MANUAL_POLICIES: Final = ("none", "manual")

FlagValues = Mapping[str, Any]  # flag values; None if not given
# flag → field of a source
SOURCE_FLAGS: Final = {
    "--repo": "repoURL",
    "--path": "path",
    "--revision": "targetRevision",
    "--helm-chart": "chart",
    "--ref": "ref",
    "--source-name": "name",
    "--tag-prefix": "tagPrefix",
}
DESTINATION_FLAGS: Final = {"--dest-server": "server", "--dest-name": "name", "--dest-namespace": "namespace"}
AUTOMATION_FLAGS: Final = {"--auto-prune": "prune", "--self-heal": "selfHeal", "--allow-empty": "allowEmpty"}
BACKOFF_FLAGS: Final = {
    "--sync-retry-backoff-duration": "duration",
    "--sync-retry-backoff-max-duration": "maxDuration",
    "--sync-retry-backoff-factor": "factor",
}


def build_application(name: str, namespace: str, flags: FlagValues) -> dict[str, Any]:
    """Build a manifest from flags alone."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    manifest: dict[str, Any] = {
        "apiVersion": ARGOPROJ_API_VERSION,
        "kind": "Application",
        "metadata": metadata,
        "spec": {"project": "default"},
    }
    application = apply_flags(manifest, flags)
    if labels := _read_pairs("--label", flags.get("--label") or ()):
        application["metadata"]["labels"] = labels
    if annotations := _read_pairs("--annotations", flags.get("--annotations") or ()):
        application["metadata"]["annotations"] = annotations
    if flags.get("--set-finalizer"):
        application["metadata"]["finalizers"] = [RESOURCES_FINALIZER]
    return application


def check_deliverable(manifest: Mapping[str, Any]) -> None:
    """Raise UserError for a manifest that no engine could deliver."""
    spec = manifest.get("spec") or {}
    sources = spec.get("sources") or ([spec["source"]] if spec.get("source") else [])
    if not sources or not all(isinstance(source, dict) and source.get("repoURL") for source in sources):
        raise UserError("no repository given; add --repo URL and --path PATH, or -f FILE with an Application")
    if not all(source.get("path") or source.get("chart") or source.get("ref") for source in sources):
        raise UserError("no path given; add --path PATH, or --helm-chart NAME")
    destination = spec.get("destination") or {}
    if not destination.get("server") and not destination.get("name"):
        raise UserError(f"no cluster given; add --dest-server {IN_CLUSTER_SERVER}")


def apply_flags(manifest: Mapping[str, Any], flags: FlagValues, position: int | None = None) -> dict[str, Any]:
    """Return a copy with the fields of the given flags replaced."""
    changed_manifest: dict[str, Any] = copy.deepcopy(dict(manifest))
    spec = changed_manifest.setdefault("spec", {})
    if flags.get("--project"):
        spec["project"] = flags["--project"]
    if flags.get("--revision-history-limit") is not None:
        spec["revisionHistoryLimit"] = flags["--revision-history-limit"]
    _apply_source_flags(spec, flags, position)
    destination = {DESTINATION_FLAGS[flag]: flags[flag] for flag in DESTINATION_FLAGS if flags.get(flag)}
    if destination:
        before = spec.get("destination") or {}
        if "server" in destination:
            before = {name: value for name, value in before.items() if name != "name"}
        if "name" in destination:
            before = {name: value for name, value in before.items() if name != "server"}
        spec["destination"] = {**before, **destination}
    _apply_policy_flags(spec, flags)
    return changed_manifest


def _apply_source_flags(spec: dict[str, Any], flags: FlagValues, position: int | None) -> None:
    fields = {field: flags[flag] for flag, field in SOURCE_FLAGS.items() if flags.get(flag)}
    sources = spec.get("sources") or []
    if sources:
        index = _find_source_index(sources, flags, position, bool(fields) or _has_source_options(flags))
        if index is not None:
            sources[index] = _apply_source_options({**sources[index], **fields}, flags)
        return
    if fields or _has_source_options(flags):
        spec["source"] = _apply_source_options({**(spec.get("source") or {}), **fields}, flags)


def build_source(flags: FlagValues) -> dict[str, Any]:
    """Build a source from flags alone."""
    return _apply_source_options({field: flags[flag] for flag, field in SOURCE_FLAGS.items() if flags.get(flag)}, flags)


def _apply_source_options(source: Mapping[str, Any], flags: FlagValues) -> dict[str, Any]:
    """argo: a list given by flags replaces the old one; for images, only entries of the same name."""
    changed_source: dict[str, Any] = copy.deepcopy(dict(source))
    if flags.get(VALUES_LITERAL_FLAG):
        changed_source["helm"] = {**(changed_source.get("helm") or {}), "values": flags[VALUES_LITERAL_FLAG]}
    for flag in FLAGS:
        flag_value = flags.get(flag.name)
        if flag.value_format == "switch" and flag_value is False:
            _remove_source_field(changed_source, flag.field.split("."), "", flag_value)
        if flag.value_format == "texts" and flag_value:
            *parents, name = flag.field.split(".")
            parent: Any = changed_source
            for entry in parents:
                parent = parent.get(entry) if isinstance(parent, dict) else None
            if isinstance(parent, dict) and parent.get(name):
                names = {_identify_entry(entry, "image") for entry in flag_value}
                is_image = flag.name == "--kustomize-image"
                parent[name] = [
                    entry for entry in parent[name] if is_image and _identify_entry(entry, "image") not in names
                ]
    return with_options(changed_source, flags)


def _has_source_options(flags: FlagValues) -> bool:
    return bool(flags.get(VALUES_LITERAL_FLAG)) or any(flags.get(flag.name) not in (None, []) for flag in FLAGS)


def _find_source_index(
    sources: Sequence[Mapping[str, Any]], flags: FlagValues, position: int | None, is_needed: bool
) -> int | None:
    if position is not None:
        if not 1 <= position <= len(sources):
            raise UserError(f"it has {len(sources)} sources, none at position {position}", where="--source-position")
        return position - 1
    name = flags.get("--source-name")
    if name:
        for index, source in enumerate(sources):
            if source.get("name") == name:
                return index
        raise UserError(f"no source named {name!r}; use --source-position", where="--source-name")
    if is_needed:
        raise UserError("the application has several sources; choose one with --source-position N, starting at 1")
    return None


def _apply_policy_flags(spec: dict[str, Any], flags: FlagValues) -> None:
    policy = dict(spec.get("syncPolicy") or {})
    policy_name = flags.get("--sync-policy")
    if policy_name in MANUAL_POLICIES:
        policy.pop("automated", None)
    elif policy_name in AUTOMATED_POLICIES:
        policy.setdefault("automated", {})
    elif policy_name is not None:
        raise UserError(f"unknown sync policy {policy_name!r}; use automated or none", where="--sync-policy")
    for flag, field in AUTOMATION_FLAGS.items():
        if flags.get(flag) is not None:
            if policy.get("automated") is None:
                message = "needs automated sync; add --sync-policy automated"
                raise UserError(message, where=flag)
            policy["automated"] = {**policy["automated"], field: flags[flag]}
    if options := flags.get("--sync-option"):
        policy["syncOptions"] = _merge_sync_options(policy.get("syncOptions") or [], options)
    if retry := _build_retry(policy.get("retry") or {}, flags):
        policy["retry"] = retry
    if policy or "syncPolicy" in spec:
        spec["syncPolicy"] = policy


def _merge_sync_options(current: Sequence[str], changes: Sequence[str]) -> list[str]:
    """argo: `Name=value` sets an option, `!Name=value` removes it."""
    options = list(current)
    for text in changes:
        name = text.removeprefix("!").partition("=")[0]
        options = [option for option in options if option.partition("=")[0] != name]
        if not text.startswith("!"):
            options.append(text)
    return options


def _build_retry(current: Mapping[str, Any], flags: FlagValues) -> dict[str, Any]:
    retry = dict(current)
    if flags.get("--sync-retry-limit") is not None:
        retry["limit"] = flags["--sync-retry-limit"]
    if flags.get("--sync-retry-refresh") is not None:
        retry["refresh"] = flags["--sync-retry-refresh"]
    backoff = {BACKOFF_FLAGS[flag]: flags[flag] for flag in BACKOFF_FLAGS if flags.get(flag) is not None}
    if backoff:
        retry["backoff"] = {**(retry.get("backoff") or {}), **backoff}
    return retry


def _read_pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UserError(f"{text!r} is not NAME=VALUE", where=flag)
        pairs[name] = value
    return pairs


# -- unset ---------------------------------------------------------------------------------------------------------

# flag → field of a source, and how its values identify list entries (empty: the whole field)
UNSET_FLAGS: Final = {
    "--parameter": ("helm.parameters", "name"),
    "--values": ("helm.valueFiles", "text"),
    "--values-literal": ("helm.values", ""),
    "--ignore-missing-value-files": ("helm.ignoreMissingValueFiles", ""),
    "--pass-credentials": ("helm.passCredentials", ""),
    "--nameprefix": ("kustomize.namePrefix", ""),
    "--namesuffix": ("kustomize.nameSuffix", ""),
    "--kustomize-version": ("kustomize.version", ""),
    "--kustomize-namespace": ("kustomize.namespace", ""),
    "--kustomize-image": ("kustomize.images", "image"),
    "--kustomize-replica": ("kustomize.replicas", "name"),
    "--ignore-missing-components": ("kustomize.ignoreMissingComponents", ""),
    "--plugin-env": ("plugin.env", "name"),
    "--ref": ("ref", ""),
}


def unset_flags(manifest: Mapping[str, Any], flags: FlagValues, position: int | None = None) -> dict[str, Any]:
    changed_manifest: dict[str, Any] = copy.deepcopy(dict(manifest))
    spec = changed_manifest.setdefault("spec", {})
    sources = spec.get("sources") or []
    index = _find_source_index(sources, flags, position, is_needed=True) if sources else None
    source = sources[index] if index is not None else spec.get("source") or {}
    for flag, (field, identified_by) in UNSET_FLAGS.items():
        if value := flags.get(flag):
            _remove_source_field(source, field.split("."), identified_by, value)
    return changed_manifest


def _remove_source_field(source: dict[str, Any], path: Sequence[str], identified_by: str, value: Any) -> None:
    *parents, name = path
    parent: Any = source
    for entry in parents:
        parent = parent.get(entry) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or name not in parent:
        return
    if identified_by:
        parent[name] = [entry for entry in parent[name] if _identify_entry(entry, identified_by) not in value]
    if not identified_by or not parent[name]:
        del parent[name]
    if parents and not source.get(parents[0]):
        source.pop(parents[0], None)


def _identify_entry(entry: Any, identified_by: str) -> str:
    if identified_by == "name":
        return str(entry.get("name")) if isinstance(entry, dict) else ""
    text = str(entry)
    if identified_by == "image":
        return text.partition("=")[0].rpartition(":")[0] or text.partition("=")[0]
    return text


__all__ = [
    "FLAGS",
    "SourceFlag",
    "apply_flags",
    "build_application",
    "build_source",
    "check_deliverable",
    "unset_flags",
]
