"""Finds fields as Go's encoding/json does, which ignores case.

In: a mapping read from YAML, and the names of its fields. Out: the mapping with these spellings. Never: changes a key
that is no field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def spell_fields_like_go(values: Mapping[Any, Any], names: Iterable[str]) -> dict[Any, Any]:
    """Rename keys that differ from a field only in case.

    argo: YAML of ConfigMaps is read with sigs.k8s.io/yaml, which sorts the keys; of two spellings, the last counts.
    """
    spellings = {name.casefold(): name for name in names}
    return {spellings.get(str(key).casefold(), key): values[key] for key in sorted(values, key=str)}
