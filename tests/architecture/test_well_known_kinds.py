"""A kind has one constant in the source tree, wherever it is used."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "argosy"


def list_kind_constants(text: str) -> Iterator[tuple[str, str]]:
    """Group and kind of each constant of a module: `POD: Final = GroupKind("", "Pod")`."""
    for statement in ast.parse(text).body:
        match statement:
            case ast.Assign(value=value) | ast.AnnAssign(value=value):
                match value:
                    case ast.Call(func=ast.Name(id="GroupKind"), args=[ast.Constant(group), ast.Constant(kind)]):
                        yield group, kind


def find_double_kinds(source: Path) -> list[str]:
    modules = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for kind in list_kind_constants(text) if "= GroupKind(" in text else ():
            modules[kind].append(path.relative_to(source).as_posix())
    return [f"{'/'.join(kind)}: {', '.join(paths)}" for kind, paths in modules.items() if len(paths) > 1]


def test_no_kind_has_two_constants() -> None:
    assert not find_double_kinds(SOURCE), "import it from kube/well_known_kinds.py"


def test_kind_with_two_constants_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('POD: Final = GroupKind("", "Pod")\nJOB = GroupKind("batch", "Job")\n')
    (tmp_path / "b.py").write_text('PODS = GroupKind("", "Pod")\n')
    assert find_double_kinds(tmp_path) == ["/Pod: a.py, b.py"]
