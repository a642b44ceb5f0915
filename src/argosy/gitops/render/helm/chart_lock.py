"""Reads Chart.lock, which pins the dependencies of a chart.

In: the lock's fields, the dependencies that Chart.yaml declares. Out: the locked version of each. Never: uses a lock
that does not belong to these dependencies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.errors import RenderError

# Helm: the order of the fields in its digest, and those that are always there.
_DIGEST_FIELDS: Final = (*("name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"),)
_REQUIRED_FIELDS: Final = ("name", "repository")
_GO_ESCAPES: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def list_locked_versions(
    lock: Mapping[str, Any], dependencies: Sequence[Mapping[str, Any]], file: str, chart_file: str
) -> list[str]:
    """Return the locked version of each dependency. Raises RenderError if the lock is for other dependencies."""
    locked = lock.get("dependencies")
    entries = [entry for entry in locked if isinstance(entry, Mapping)] if isinstance(locked, list) else []
    digests = [compute_lock_digest(dependencies, entries)]
    if file.endswith("requirements.lock"):
        digests.append(compute_helm2_digest(dependencies))
    if lock.get("digest") not in digests:
        names = (
            f"{file.rpartition('/')[2]}) is out of sync with the dependencies file ({chart_file.rpartition('/')[2]})"
        )
        raise RenderError(f"the lock file ({names}; run `helm dependency update` and commit it", where=file)
    return [_find_locked_version(entries, dependency, file) for dependency in dependencies]


def compute_lock_digest(dependencies: Sequence[Mapping[str, Any]], locked: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest that Helm writes into the lock: that of both lists, as Go encodes them."""
    return _hash_as_go([[_select_digest_fields(entry) for entry in entries] for entries in (dependencies, locked)])


def compute_helm2_digest(dependencies: Sequence[Mapping[str, Any]]) -> str:
    """Return the digest that Helm 2 wrote into requirements.lock."""
    return _hash_as_go({"dependencies": [_select_digest_fields(entry) for entry in dependencies]})


def _hash_as_go(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for character, escape in _GO_ESCAPES.items():
        text = text.replace(character, escape)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"


def _select_digest_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _sort_keys(entry.get(name) or ("" if name in _REQUIRED_FIELDS else None))
        for name in _DIGEST_FIELDS
        if name in _REQUIRED_FIELDS or entry.get(name)
    }


def _sort_keys(value: Any) -> Any:
    """Go sorts the keys of maps, here those in import-values."""
    if isinstance(value, Mapping):
        return {str(key): _sort_keys(value[key]) for key in sorted(value, key=str)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


def _find_locked_version(entries: Sequence[Mapping[str, Any]], dependency: Mapping[str, Any], file: str) -> str:
    repository = str(dependency.get("repository") or "")
    for entry in entries:
        if entry.get("name") == dependency["name"] and str(entry.get("repository") or "") == repository:
            return str(entry.get("version") or "")
    raise RenderError(f"has no entry for the dependency {dependency['name']}; run `helm dependency update`", where=file)
