"""Builds and changes Application manifests from flags with Argo CD's names.

In: parsed flags, the current Application. Out: its manifest. Never: writes it; changes fields that no flag names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.annotations import RESOURCES_FINALIZER
from argosy.errors import UserError
from argosy.gitops.workspace.source_flags import FLAGS, Flag, with_options

HERE: Final = "https://kubernetes.default.svc"
AUTOMATED: Final = ("automated", "auto", "automatic")
LITERAL: Final = "--values-literal-file"  # the file's content
MANUAL: Final = ("none", "manual")

Given = Mapping[str, Any]  # flag values; None if not given
# flag → field of a source
SOURCE: Final = {
    "--repo": "repoURL",
    "--path": "path",
    "--revision": "targetRevision",
    "--helm-chart": "chart",
    "--ref": "ref",
    "--source-name": "name",
    "--tag-prefix": "tagPrefix",
}
DESTINATION: Final = {"--dest-server": "server", "--dest-name": "name", "--dest-namespace": "namespace"}
AUTOMATION: Final = {"--auto-prune": "prune", "--self-heal": "selfHeal", "--allow-empty": "allowEmpty"}
BACKOFF: Final = {
    "--sync-retry-backoff-duration": "duration",
    "--sync-retry-backoff-max-duration": "maxDuration",
    "--sync-retry-backoff-factor": "factor",
}


def new_application(name: str, namespace: str, given: Given) -> dict[str, Any]:
    """Build a manifest from flags alone."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    manifest: dict[str, Any] = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": metadata,
        "spec": {"project": "default"},
    }
    made = changed(manifest, given)
    if labels := _pairs("--label", given.get("--label") or ()):
        made["metadata"]["labels"] = labels
    if annotations := _pairs("--annotations", given.get("--annotations") or ()):
        made["metadata"]["annotations"] = annotations
    if given.get("--set-finalizer"):
        made["metadata"]["finalizers"] = [RESOURCES_FINALIZER]
    return made


def checked(manifest: Mapping[str, Any]) -> None:
    """Raise UserError for a manifest that no engine could deliver."""
    spec = manifest.get("spec") or {}
    sources = spec.get("sources") or ([spec["source"]] if spec.get("source") else [])
    if not sources or not all(isinstance(each, dict) and each.get("repoURL") for each in sources):
        raise UserError("no repository given; add --repo URL and --path PATH, or -f FILE with an Application")
    if not all(each.get("path") or each.get("chart") or each.get("ref") for each in sources):
        raise UserError("no path given; add --path PATH, or --helm-chart NAME")
    destination = spec.get("destination") or {}
    if not destination.get("server") and not destination.get("name"):
        raise UserError(f"no cluster given; add --dest-server {HERE}")


def changed(manifest: Mapping[str, Any], given: Given, position: int | None = None) -> dict[str, Any]:
    """Return a copy with the fields of the given flags replaced."""
    made: dict[str, Any] = copy.deepcopy(dict(manifest))
    spec = made.setdefault("spec", {})
    if given.get("--project"):
        spec["project"] = given["--project"]
    if given.get("--revision-history-limit") is not None:
        spec["revisionHistoryLimit"] = given["--revision-history-limit"]
    _put_source(spec, given, position)
    destination = {DESTINATION[flag]: given[flag] for flag in DESTINATION if given.get(flag)}
    if destination:
        before = spec.get("destination") or {}
        if "server" in destination:
            before = {name: value for name, value in before.items() if name != "name"}
        if "name" in destination:
            before = {name: value for name, value in before.items() if name != "server"}
        spec["destination"] = {**before, **destination}
    _put_policy(spec, given)
    return made


def _put_source(spec: dict[str, Any], given: Given, position: int | None) -> None:
    typed = {field: given[flag] for flag, field in SOURCE.items() if given.get(flag)}
    many = spec.get("sources") or []
    if many:
        place = _place(many, given, position, bool(typed) or _has_options(given))
        if place is not None:
            many[place] = _with_options({**many[place], **typed}, given)
        return
    if typed or _has_options(given):
        spec["source"] = _with_options({**(spec.get("source") or {}), **typed}, given)


def new_source(given: Given) -> dict[str, Any]:
    """Build a source from flags alone."""
    return _with_options({field: given[flag] for flag, field in SOURCE.items() if given.get(flag)}, given)


def _with_options(source: Mapping[str, Any], given: Given) -> dict[str, Any]:
    """argo: a list given by flags replaces the old one; for images, only entries of the same name."""
    made: dict[str, Any] = copy.deepcopy(dict(source))
    if given.get(LITERAL):
        made["helm"] = {**(made.get("helm") or {}), "values": given[LITERAL]}
    for flag in FLAGS:
        typed = given.get(flag.name)
        if flag.form == "switch" and typed is False:
            _remove(made, flag.field.split("."), "", typed)
        if flag.form == "texts" and typed:
            *above, name = flag.field.split(".")
            holder: Any = made
            for each in above:
                holder = holder.get(each) if isinstance(holder, dict) else None
            if isinstance(holder, dict) and holder.get(name):
                names = {_called(each, "image") for each in typed}
                is_image = flag.name == "--kustomize-image"
                holder[name] = [each for each in holder[name] if is_image and _called(each, "image") not in names]
    return with_options(made, given)


def _has_options(given: Given) -> bool:
    return bool(given.get(LITERAL)) or any(given.get(flag.name) not in (None, []) for flag in FLAGS)


def _place(many: Sequence[Mapping[str, Any]], given: Given, position: int | None, is_needed: bool) -> int | None:
    if position is not None:
        if not 1 <= position <= len(many):
            raise UserError(f"it has {len(many)} sources, none at position {position}", where="--source-position")
        return position - 1
    name = given.get("--source-name")
    if name:
        for place, source in enumerate(many):
            if source.get("name") == name:
                return place
        raise UserError(f"no source named {name!r}; use --source-position", where="--source-name")
    if is_needed:
        raise UserError("the application has several sources; choose one with --source-position N, starting at 1")
    return None


def _put_policy(spec: dict[str, Any], given: Given) -> None:
    policy = dict(spec.get("syncPolicy") or {})
    word = given.get("--sync-policy")
    if word in MANUAL:
        policy.pop("automated", None)
    elif word in AUTOMATED:
        policy.setdefault("automated", {})
    elif word is not None:
        raise UserError(f"unknown sync policy {word!r}; use automated or none", where="--sync-policy")
    for flag, field in AUTOMATION.items():
        if given.get(flag) is not None:
            if policy.get("automated") is None:
                told = "needs automated sync; add --sync-policy automated"
                raise UserError(told, where=flag)
            policy["automated"] = {**policy["automated"], field: given[flag]}
    if options := given.get("--sync-option"):
        policy["syncOptions"] = _options(policy.get("syncOptions") or [], options)
    if retry := _retry(policy.get("retry") or {}, given):
        policy["retry"] = retry
    if policy or "syncPolicy" in spec:
        spec["syncPolicy"] = policy


def _options(before: Sequence[str], typed: Sequence[str]) -> list[str]:
    """argo: `Name=value` sets an option, `!Name=value` removes it."""
    kept = list(before)
    for text in typed:
        name = text.removeprefix("!").partition("=")[0]
        kept = [each for each in kept if each.partition("=")[0] != name]
        if not text.startswith("!"):
            kept.append(text)
    return kept


def _retry(before: Mapping[str, Any], given: Given) -> dict[str, Any]:
    made = dict(before)
    if given.get("--sync-retry-limit") is not None:
        made["limit"] = given["--sync-retry-limit"]
    if given.get("--sync-retry-refresh") is not None:
        made["refresh"] = given["--sync-retry-refresh"]
    backoff = {BACKOFF[flag]: given[flag] for flag in BACKOFF if given.get(flag) is not None}
    if backoff:
        made["backoff"] = {**(made.get("backoff") or {}), **backoff}
    return made


def _pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UserError(f"{text!r} is not NAME=VALUE", where=flag)
        found[name] = value
    return found


# -- unset ---------------------------------------------------------------------------------------------------------

# flag → field of a source, and how its values identify list entries (empty: the whole field)
UNSET: Final = {
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


def without(manifest: Mapping[str, Any], given: Given, position: int | None = None) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(dict(manifest))
    spec = made.setdefault("spec", {})
    many = spec.get("sources") or []
    place = _place(many, given, position, is_needed=True) if many else None
    source = many[place] if place is not None else spec.get("source") or {}
    for flag, (field, by) in UNSET.items():
        if value := given.get(flag):
            _remove(source, field.split("."), by, value)
    return made


def _remove(source: dict[str, Any], path: Sequence[str], by: str, value: Any) -> None:
    *above, name = path
    holder: Any = source
    for each in above:
        holder = holder.get(each) if isinstance(holder, dict) else None
    if not isinstance(holder, dict) or name not in holder:
        return
    if by:
        holder[name] = [each for each in holder[name] if _called(each, by) not in value]
    if not by or not holder[name]:
        del holder[name]
    if above and not source.get(above[0]):
        source.pop(above[0], None)


def _called(entry: Any, by: str) -> str:
    if by == "name":
        return str(entry.get("name")) if isinstance(entry, dict) else ""
    text = str(entry)
    if by == "image":
        return text.partition("=")[0].rpartition(":")[0] or text.partition("=")[0]
    return text


__all__ = ["FLAGS", "Flag", "changed", "checked", "new_application", "new_source", "without"]
