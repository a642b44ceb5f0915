"""A kind has one constant in the source tree, and so has an API version that several packages write."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.kube import well_known_kinds
from argosy.kube.resource_key import GroupKind

SOURCE = Path(__file__).parents[2] / "src" / "argosy"
CONSTANTS = "kube/well_known_kinds.py"
WELL_KNOWN_KINDS = {kind: name for name, kind in vars(well_known_kinds).items() if isinstance(kind, GroupKind)}
API_VERSIONS = {version: name for name, version in vars(well_known_kinds).items() if name.endswith("_API_VERSION")}


def list_kind_constants(tree: ast.Module) -> Iterator[GroupKind]:
    """Kinds of the constants of a module: `POD: Final = GroupKind("", "Pod")`."""
    for statement in tree.body:
        match statement:
            case ast.Assign(value=ast.Call() as call) | ast.AnnAssign(value=ast.Call() as call):
                if getattr(call.func, "id", "") == "GroupKind" and (kind := read_kind(call)):
                    yield kind


def list_literals(tree: ast.Module) -> Iterator[str]:
    """Names of constants of which a module writes the value: `ResourceKey("", "Pod", …)`, `"argoproj.io/v1alpha1"`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call() if (kind := read_kind(node)) in WELL_KNOWN_KINDS:
                yield WELL_KNOWN_KINDS[kind]
            case ast.Constant(str(text)) if text in API_VERSIONS:
                yield API_VERSIONS[text]


def read_kind(call: ast.Call) -> GroupKind | None:
    """Kind of a call of GroupKind or ResourceKey with a constant group and kind."""
    match call:
        case ast.Call(
            func=ast.Name(id="GroupKind" | "ResourceKey") | ast.Attribute(attr="GroupKind" | "ResourceKey"),
            args=[ast.Constant(str(group)), ast.Constant(str(kind)), *_],
        ):
            return GroupKind(group, kind)
    return None


def read_modules(source: Path) -> Iterator[tuple[str, ast.Module]]:
    words = ("GroupKind(", "ResourceKey(", *API_VERSIONS)
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield path.relative_to(source).as_posix(), ast.parse(text)


def find_double_kinds(source: Path) -> list[str]:
    modules = defaultdict(list)
    for path, tree in read_modules(source):
        for kind in list_kind_constants(tree):
            modules[kind].append(path)
    return [f"{'/'.join(kind)}: {', '.join(paths)}" for kind, paths in modules.items() if len(paths) > 1]


def find_literals(source: Path) -> list[str]:
    return [
        f"{path}: {name}" for path, tree in read_modules(source) if path != CONSTANTS for name in list_literals(tree)
    ]


def test_no_kind_has_two_constants() -> None:
    assert not find_double_kinds(SOURCE), "import it from kube/well_known_kinds.py"


def test_no_module_writes_a_well_known_kind_or_version() -> None:
    assert not find_literals(SOURCE), "import the constant from kube/well_known_kinds.py"


def test_kind_with_two_constants_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('POD: Final = GroupKind("", "Pod")\nJOB = GroupKind("batch", "Job")\n')
    (tmp_path / "b.py").write_text('PODS = GroupKind("", "Pod")\n')
    assert find_double_kinds(tmp_path) == ["/Pod: a.py, b.py"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('def f(name):\n    return ResourceKey("", "Pod", "default", name)\n', "POD"),
        ('def f():\n    return GroupKind("batch", "Job")\n', "JOB"),
        ('KEY = resource_key.ResourceKey("", "Secret", *rest)\n', "SECRET"),
        ('META = {"apiVersion": "argoproj.io/v1alpha1"}\n', "ARGOPROJ_API_VERSION"),
    ],
)
def test_literal_of_a_well_known_kind_or_version_is_reported(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "a.py").write_text(text)
    assert find_literals(tmp_path) == [f"a.py: {name}"]


def test_other_kinds_and_variables_are_not_reported(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('ResourceKey("", kind, "a", "b")\nGroupKind("example.org", "Thing")\n')
    assert find_literals(tmp_path) == []
