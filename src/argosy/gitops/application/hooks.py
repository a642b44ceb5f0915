"""Reads the sync annotations of a manifest: hook, phases, wave, delete policies, options.

In: a manifest of any shape. Out: values. Never: raises; invalid annotations are ignored.
"""

from __future__ import annotations

import enum
import re
from typing import Final

from argosy import annotations as names
from argosy.gitops.application.operations import Phase
from argosy.kube.objects import Manifest

_SKIP: Final = "Skip"
_KNOWN: Final = frozenset((*Phase, _SKIP))
_HELM: Final = {
    "pre-install": Phase.PRE_SYNC,
    "pre-upgrade": Phase.PRE_SYNC,
    "post-install": Phase.POST_SYNC,
    "post-upgrade": Phase.POST_SYNC,
    "pre-delete": Phase.PRE_DELETE,
    "post-delete": Phase.POST_DELETE,
}
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")


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


def annotation_text(manifest: Manifest, name: str) -> str | None:
    """Return an annotation; None if it is absent, or if metadata has an unexpected type."""
    metadata = manifest.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = found.get(name) if isinstance(found, dict) else None
    return text if isinstance(text, str) else None


def is_hook(manifest: Manifest) -> bool:
    """argo: hooks of unsupported types, such as Helm's `test`, are hooks too, though they never run."""
    if annotation_text(manifest, names.HOOK) is not None:
        return not is_skipped(manifest)
    helm = annotation_text(manifest, names.HELM_HOOK)
    # argo: Helm marks CRDs in the same way, but they are ordinary manifests.
    return helm is not None and helm != "crd-install"


def is_skipped(manifest: Manifest) -> bool:
    """True if Skip is the only known hook type. Such a manifest is never applied."""
    found = words(manifest, names.HOOK)
    return bool(found) and set(found) & _KNOWN == {_SKIP}


def phases(manifest: Manifest) -> tuple[Phase, ...]:
    """Return the phases of a hook. argo: its own annotation overrides Helm's; none for unsupported types."""
    own = words(manifest, names.HOOK)
    if own:
        return tuple(Phase(word) for word in own if word in _KNOWN and word != _SKIP)
    found = (_HELM.get(word) for word in words(manifest, names.HELM_HOOK))
    return tuple(dict.fromkeys(phase for phase in found if phase))


def delete_policies(manifest: Manifest) -> frozenset[DeletePolicy]:
    own = words(manifest, names.HOOK_DELETE_POLICY)
    found = {DeletePolicy(word) for word in own if word in set(DeletePolicy)}
    found |= {_HELM_POLICIES[word] for word in words(manifest, names.HELM_HOOK_DELETE_POLICY) if word in _HELM_POLICIES}
    return frozenset(found or {DeletePolicy.BEFORE_HOOK_CREATION})  # argo: the default


def wave(manifest: Manifest) -> int:
    """argo: a wave that is not an integer is ignored; then Helm's hook weight counts, then 0."""
    for name in (names.SYNC_WAVE, names.HELM_HOOK_WEIGHT):
        text = annotation_text(manifest, name)
        if text is not None and _WHOLE.fullmatch(text):
            return int(text)
    return 0


def sync_options(manifest: Manifest) -> tuple[str, ...]:
    return words(manifest, names.SYNC_OPTIONS)


def has_option(manifest: Manifest | None, option: str) -> bool:
    """True if the manifest itself has an option such as `Replace=true`."""
    return manifest is not None and option in sync_options(manifest)


def compare_options(manifest: Manifest) -> tuple[str, ...]:
    return words(manifest, names.COMPARE_OPTIONS)


def words(manifest: Manifest, name: str) -> tuple[str, ...]:
    """Return the items of a comma-separated annotation, each once."""
    text = annotation_text(manifest, name)
    if not text:
        return ()
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
