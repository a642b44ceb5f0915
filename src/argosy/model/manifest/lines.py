"""Where in a text a field of a manifest stands. In: YAML or JSON text, and the path of a field. Out: line numbers.

Never: reads what a field means; raises for a text that is no YAML, where everything is on the first line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import yaml

Path = Sequence[str | int]
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Lines:
    """The lines of one text; manifests in it are counted as `read_manifests` gives them.

    A path that goes on below a text goes into the YAML that the text holds.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def of_field(self, number: int, path: Path) -> int:
        """Where the name of a field stands, or of the last on its path that is there."""
        return self._find(number, path)[0]

    def of_text(self, number: int, path: Path, line: int) -> int:
        """The line of the whole for a line of the text at this path."""
        _, start, end = self._find(number, path)
        return min(start + line - 1, end)

    @cached_property
    def _objects(self) -> list[Any]:
        try:
            return [each for top in yaml.compose_all(self._text, Loader=_LOADER) for each in _objects_in(top)]
        except yaml.YAMLError:  # JSON with escapes that YAML does not have
            return []

    def _find(self, number: int, path: Path) -> tuple[int, int, int]:
        """The line of the last name on the path, and the first and the last line of what it holds."""
        if not 0 <= number < len(self._objects):
            return 1, 1, 1
        node, above = self._objects[number], 0
        name = start = node.start_mark.line + 1
        for step in path:
            if isinstance(node, yaml.ScalarNode):
                if not _is_block(node):
                    break  # its lines are not those of the file
                above, node = above + _first(node) - 1, _inside(node)
            found = _step(node, step)
            if found is None:
                break
            marked, node = found
            name, start = above + marked.start_mark.line + 1, above + _first(node)
        more = len(node.value.splitlines()) - 1 if _is_block(node) else 0
        return name, start, start + max(more, 0)


def _objects_in(node: Any) -> Iterator[Any]:
    """The manifests of a document, in the order in which they are read."""
    if not isinstance(node, yaml.MappingNode):
        return
    fields = {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
    kind, items = fields.get("kind"), fields.get("items")
    if kind is not None and str(kind.value).endswith("List") and isinstance(items, yaml.SequenceNode):
        for item in items.value:
            yield from _objects_in(item)
    else:
        yield node


def _first(node: Any) -> int:
    """The line on which what a node holds begins; that of a block is below its sign."""
    return int(node.start_mark.line) + (2 if _is_block(node) else 1)


def _is_block(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _inside(node: Any) -> Any:
    try:
        return yaml.compose(node.value, Loader=_LOADER)
    except yaml.YAMLError:
        return None


def _step(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """The node that names the field, and the one that it holds."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    return None
