"""Recovers details of YAML that parsed values lose: explicit nulls and the text of scalars. In: text and its values.

Out: YamlDetails. Never: composes the YAML unless the text may need it; that is slower than parsing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import yaml

from argosy.gitops.render.kustomize.resource import Nulls

BLANK: Final = "\0"  # prefix for a key without a value in a flow map, which is read as an empty string
_NULL: Final = re.compile(rb"[:\-\[,][ \t]+(?:null|Null|NULL|~)[ \t]*(?:$|[,}\]#])", re.MULTILINE)
_BLANK: Final = re.compile(rb":[ \t]*[,}]")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT.*")


def may_be_lost(text: bytes) -> bool:
    """True if the text may have explicit nulls, or flow maps with keys that have no value."""
    return bool(_NULL.search(text) or _BLANK.search(text))


def is_odd(entries: Any) -> bool:
    """True if labels or annotations may have source text that differs from their values."""
    return isinstance(entries, dict) and any(
        type(each) is not str or (each[:1].isdigit() and _TIME.fullmatch(each)) for each in entries.values()
    )


class Marks:
    """Explicit nulls, keys of flow maps without a value, and the source text of plain scalars."""

    def __init__(self, documents: Sequence[Any], text: bytes) -> None:
        self.nulls: Nulls = {}
        self._texts: dict[int, dict[str, str]] = {}
        nodes = yaml.compose_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        try:
            for value, node in zip(documents, nodes):
                self._walk(value, node)
        except yaml.YAMLError:  # JSON with escapes that YAML does not have
            pass

    def texts(self, entries: Any) -> dict[str, str]:
        """Return the source text of a map's entries, where it differs from the value."""
        return self._texts.get(id(entries), {})

    def _walk(self, value: Any, node: Any) -> None:
        if type(value) is list and isinstance(node, yaml.SequenceNode):
            for each, below in zip(value, node.value):
                self._walk(each, below)
        if type(value) is not dict or not isinstance(node, yaml.MappingNode):
            return
        fields = {key.value: below for key, below in node.value if isinstance(key, yaml.ScalarNode)}
        found = set()
        for key, each in value.items():
            below = fields.get(key)
            if type(each) is dict or type(each) is list:
                self._walk(each, below)
            elif isinstance(below, yaml.ScalarNode) and not below.style:
                if each is None and below.value:
                    found.add(key)
                if each == "":
                    found.add(BLANK + key)
                if each != below.value:
                    self._texts.setdefault(id(value), {})[key] = below.value
        if found:
            self.nulls[id(value)] = value, frozenset(found)


def settle(documents: Sequence[Any], text: bytes, *, as_texts: bool) -> None:
    """Give patches the values that kustomize's merge uses.

    k8s: annotations keep their source text. In `patchesStrategicMerge`, but not in `patches`, labels do too, and a null
    is
    the string `null`: it deletes nothing. A key without a value in a flow map is a null.
    """
    wanted = ("labels", "annotations") if as_texts else ("annotations",)
    held = [
        (metadata, field)
        for each in documents
        if isinstance(each, dict) and isinstance(metadata := each.get("metadata"), dict)
        for field in wanted
        if field in metadata
    ]
    if not _BLANK.search(text) and not any(is_odd(metadata[field]) for metadata, field in held):
        marks = None
    else:
        marks = Marks(documents, text)
        for holder, keys in marks.nulls.values():
            holder.update({key[1:]: None for key in keys if key[0] == BLANK})
    for metadata, field in held:
        _settle_entries(metadata, field, marks, as_texts)


def _settle_entries(metadata: dict[str, Any], field: str, marks: Marks | None, as_texts: bool) -> None:
    entries = metadata[field]
    if as_texts and not entries:
        del metadata[field]
    if not isinstance(entries, dict):
        return
    texts = marks.texts(entries) if marks else {}
    for key, each in entries.items():
        if as_texts and (each is None or type(each) in (dict, list)):
            entries[key] = texts.get(key, "")
        elif each is not None:
            entries[key] = texts.get(key, each)
