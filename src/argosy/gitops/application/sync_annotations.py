"""Reads the sync annotations of a manifest: hook, phases, wave, delete policies, options.

In: a manifest of any shape. Out: values. Never: raises; invalid annotations are ignored.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from argosy import annotations as names
from argosy.gitops.application.operations import SyncPhase
from argosy.kube.objects import Manifest

_SKIP: Final = "Skip"
_KNOWN_HOOK_TYPES: Final = frozenset((*SyncPhase, _SKIP))
_HELM_PHASES: Final = {
    "pre-install": SyncPhase.PRE_SYNC,
    "pre-upgrade": SyncPhase.PRE_SYNC,
    "post-install": SyncPhase.POST_SYNC,
    "post-upgrade": SyncPhase.POST_SYNC,
    "pre-delete": SyncPhase.PRE_DELETE,
    "post-delete": SyncPhase.POST_DELETE,
}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")


class DeletePolicy(enum.StrEnum):
    """When a hook is deleted."""

    HOOK_SUCCEEDED = "HookSucceeded"
    HOOK_FAILED = "HookFailed"
    BEFORE_HOOK_CREATION = "BeforeHookCreation"


_HELM_POLICIES: Final = {
    "hook-succeeded": DeletePolicy.HOOK_SUCCEEDED,
    "hook-failed": DeletePolicy.HOOK_FAILED,
    "before-hook-creation": DeletePolicy.BEFORE_HOOK_CREATION,
}


def get_annotation(manifest: Manifest, name: str) -> str | None:
    """Return an annotation; None if it is absent, or if metadata has an unexpected type."""
    metadata = manifest.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(name) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else None


def is_hook(manifest: Manifest) -> bool:
    """argo: hooks of unsupported types, such as Helm's `test`, are hooks too, though they never run."""
    if get_annotation(manifest, names.HOOK) is not None:
        return not is_skipped(manifest)
    helm = get_annotation(manifest, names.HELM_HOOK)
    # argo: Helm marks CRDs in the same way, but they are ordinary manifests.
    return helm is not None and helm != "crd-install"


def is_skipped(manifest: Manifest) -> bool:
    """True if Skip is the only known hook type. Such a manifest is never applied."""
    hook_types = split_annotation(manifest, names.HOOK)
    return bool(hook_types) and set(hook_types) & _KNOWN_HOOK_TYPES == {_SKIP}


def list_hook_phases(manifest: Manifest) -> tuple[SyncPhase, ...]:
    """Return the phases of a hook. argo: its own annotation overrides Helm's; none for unsupported types."""
    own_types = split_annotation(manifest, names.HOOK)
    if own_types:
        return tuple(
            SyncPhase(hook_type) for hook_type in own_types if hook_type in _KNOWN_HOOK_TYPES and hook_type != _SKIP
        )
    helm_phases = (_HELM_PHASES.get(hook_type) for hook_type in split_annotation(manifest, names.HELM_HOOK))
    return tuple(dict.fromkeys(phase for phase in helm_phases if phase))


def list_delete_policies(manifest: Manifest) -> frozenset[DeletePolicy]:
    own_policies = split_annotation(manifest, names.HOOK_DELETE_POLICY)
    policies = {DeletePolicy(policy_name) for policy_name in own_policies if policy_name in set(DeletePolicy)}
    policies |= {
        _HELM_POLICIES[policy_name]
        for policy_name in split_annotation(manifest, names.HELM_HOOK_DELETE_POLICY)
        if policy_name in _HELM_POLICIES
    }
    return frozenset(policies or {DeletePolicy.BEFORE_HOOK_CREATION})  # argo: the default


def read_wave(manifest: Manifest) -> int:
    """argo: a wave that is not an integer is ignored; then Helm's hook weight counts, then 0."""
    for name in (names.SYNC_WAVE, names.HELM_HOOK_WEIGHT):
        text = get_annotation(manifest, name)
        if text is not None and _INTEGER.fullmatch(text):
            return int(text)
    return 0


def list_sync_options(manifest: Manifest) -> tuple[str, ...]:
    return split_annotation(manifest, names.SYNC_OPTIONS)


def has_option(manifest: Manifest | None, option: str) -> bool:
    """True if the manifest itself has an option such as `Replace=true`."""
    return manifest is not None and option in list_sync_options(manifest)


def list_compare_options(manifest: Manifest) -> tuple[str, ...]:
    return split_annotation(manifest, names.COMPARE_OPTIONS)


def split_annotation(manifest: Manifest, name: str) -> tuple[str, ...]:
    """Return the items of a comma-separated annotation, each once."""
    text = get_annotation(manifest, name)
    if not text:
        return ()
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))
