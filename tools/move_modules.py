"""Move modules of argosy to new names, and rewrite every place that names them.

In: a table, one move a line (`old.module new.module`, below `argosy`; a package takes along what has no line of its
own). Out: files moved with `git mv`; imports, quoted module paths and file paths rewritten in all tracked text files.
Never: changes a name that is not a module's. Module names that a file binds twice keep the old name (`as old`), and are
listed at the end.

Run: python tools/move_modules.py TABLE [--dry-run]
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path("src")
ROOT = "argosy"
DOTTED = re.compile(rf"(?<![\w./-]){ROOT}((?:\.[A-Za-z_]\w*)+)")
SLASHED = re.compile(rf"(?<![\w.])((?:src/)?{ROOT})((?:/[A-Za-z_][\w]*)+)(\.py)?(?![\w])")
BELOW_ROOT = re.compile(r"(?<![\w./-])((?:[a-z_]\w*/)+[a-z_]\w*)\.py(?!\w)")
TEST_PATH = re.compile(r"(?:tests/)?(?:unit|component)(?:/\w+)+\.py")
NOT_TEXT = {".png", ".svg", ".woff2", ".ico", ".gz", ".zip", ".db", ".bin", ".whl"}
# Module names in these are records of the past, or of other software.
UNTOUCHED = ("CHANGELOG.md",)
# Folders of tests that have the packages of src as subfolders.
MIRRORS = ("tests/unit", "tests/component")


def read_table(path: Path) -> dict[str, str]:
    moves: dict[str, str] = {}
    for line in path.read_text().splitlines():
        words = line.partition("#")[0].split()
        if words:
            old, new = words
            moves[f"{ROOT}.{old}"] = f"{ROOT}.{new}"
    return moves


def list_modules() -> set[str]:
    """Every module and package below src, by its dotted name."""
    names = set()
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        names.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def build_new_name(name: str, moves: Mapping[str, str]) -> str:
    """The new dotted name: the longest line of the table that fits wins."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if (new := moves.get(".".join(parts[:end]))) is not None:
            return ".".join([new, *parts[end:]])
    return name


class Importer:
    """Rewrites one Python file."""

    def __init__(self, text: str, modules: set[str], moves: Mapping[str, str]) -> None:
        self._text, self._modules, self._moves = text, modules, moves
        self._lines = text.encode().splitlines(keepends=True)
        self._edits: list[tuple[int, int, bytes]] = []
        self.kept_names: list[str] = []

    def rewrite(self) -> str:
        tree = ast.parse(self._text)
        bindings = count_bindings(tree)
        renames: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                self._rewrite_from(node, bindings, renames)
        if renames:
            for node in ast.walk(tree):
                if isinstance(node, ast.Name) and node.id in renames:
                    self._replace(node, renames[node.id].encode())
        data = self._text.encode()
        for start, end, new in sorted(self._edits, reverse=True):
            data = data[:start] + new + data[end:]
        return data.decode()

    def _rewrite_from(self, node: ast.ImportFrom, bindings: Mapping[str, int], renames: dict[str, str]) -> None:
        assert node.module
        new_package = build_new_name(node.module, self._moves)
        stays: list[str] = []
        others: list[str] = []
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            spelled = alias.name + (f" as {alias.asname}" if alias.asname else "")
            if full not in self._modules:
                stays.append(spelled)
                continue
            parent, _, leaf = build_new_name(full, self._moves).rpartition(".")
            if parent == new_package and leaf == alias.name:
                stays.append(spelled)
                continue
            bound = alias.asname or alias.name
            if alias.asname is None and leaf != alias.name:
                if bindings.get(bound, 0) == 1 and leaf not in bindings and leaf not in renames.values():
                    renames[bound] = leaf
                    bound = leaf
                else:
                    self.kept_names.append(bound)
            others.append(f"from {parent} import {leaf}" + ("" if bound == leaf else f" as {bound}"))
        if not others:
            return
        if stays:
            others.insert(0, f"from {node.module} import {', '.join(stays)}")
        indent = b" " * node.col_offset
        self._replace(node, (b"\n" + indent).join(line.encode() for line in others))

    def _replace(self, node: ast.AST, new: bytes) -> None:
        start = sum(map(len, self._lines[: node.lineno - 1])) + node.col_offset
        end = sum(map(len, self._lines[: node.end_lineno - 1])) + node.end_col_offset
        self._edits.append((start, end, new))


def count_bindings(tree: ast.AST) -> dict[str, int]:
    """How often each name is bound anywhere in a file, in whatever scope."""
    counts: dict[str, int] = {}

    def add(name: str | None) -> None:
        if name:
            counts[name] = counts.get(name, 0) + 1

    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                add(name)
            case ast.arg(arg=name):
                add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    add(alias.asname or alias.name.partition(".")[0])
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                add(name)
            case ast.MatchMapping(rest=name):
                add(name)
    return counts


def rewrite_names(text: str, modules: set[str], moves: Mapping[str, str]) -> str:
    """Dotted names and paths, in code, strings and prose alike."""

    def known(parts: list[str]) -> int:
        """How many of the parts name a module."""
        for end in range(len(parts), 0, -1):
            if ".".join([ROOT, *parts[:end]]) in modules:
                return end
        return 0

    def dotted(match: re.Match[str]) -> str:
        parts = match[1][1:].split(".")
        end = known(parts)
        return ".".join([build_new_name(".".join([ROOT, *parts[:end]]), moves), *parts[end:]])

    def slashed(match: re.Match[str]) -> str:
        parts = match[2][1:].split("/")
        end = known(parts)
        if not end or (match[3] and end != len(parts)):
            return match[0]
        new = build_new_name(".".join([ROOT, *parts[:end]]), moves).split(".")[1:]
        return match[1] + "/" + "/".join([*new, *parts[end:]]) + (match[3] or "")

    def below_root(match: re.Match[str]) -> str:
        name = f"{ROOT}." + match[1].replace("/", ".")
        new = build_new_name(name, moves) if name in modules else name
        return match[0] if new == name else "/".join(new.split(".")[1:]) + ".py"

    return BELOW_ROOT.sub(below_root, SLASHED.sub(slashed, DOTTED.sub(dotted, text)))


def rewrite_test_path(path: str, test_paths: Mapping[str, str]) -> str:
    """The new path of a test, with or without `tests/` before it."""
    full = path if path.startswith("tests/") else f"tests/{path}"
    new = test_paths.get(full, full)
    return new if path.startswith("tests/") else new.removeprefix("tests/")


def list_text_files() -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        path = Path(name)
        if path.suffix not in NOT_TEXT and name not in UNTOUCHED and path.is_file() and not path.is_symlink():
            yield path


def list_file_moves(modules: set[str], moves: Mapping[str, str]) -> dict[Path, Path]:
    """Old file → new file, for Python files and what lies beside them."""
    listed = subprocess.run(["git", "ls-files", "-z", str(SOURCE)], check=True, capture_output=True, text=True).stdout
    found: dict[Path, Path] = {}
    for name in filter(None, listed.split("\0")):
        path = Path(name)
        parts = path.relative_to(SOURCE).parts
        if path.suffix == ".py" and parts[-1] != "__init__.py":
            new = build_new_name(".".join(parts)[: -len(".py")], moves).split(".")
            target = SOURCE.joinpath(*new).with_suffix(".py")
        else:
            package = ".".join(parts[:-1])
            while package not in modules and "." in package:  # a folder of data below a package
                package = package.rpartition(".")[0]
            rest = parts[len(package.split(".")) :]
            target = SOURCE.joinpath(*build_new_name(package, moves).split("."), *rest)
        if target != path:
            found[path] = target
    return found


def list_test_moves(modules: set[str], moves: Mapping[str, str]) -> dict[Path, Path]:
    """Old file → new file for tests that mirror src: a test follows most of the modules that it imports."""
    listed = subprocess.run(["git", "ls-files", "-z", *MIRRORS], check=True, capture_output=True, text=True).stdout
    found: dict[Path, Path] = {}
    for path in map(Path, filter(None, listed.split("\0"))):
        root = Path(*path.parts[:2])
        package = ".".join([ROOT, *path.parts[2:-1]])
        if package == ROOT or path.suffix != ".py":
            continue
        new = build_new_name(package, moves)
        if new == package and any(old.startswith(f"{package}.") for old in moves):
            new = find_new_package(path, package, modules, moves)
        target = root.joinpath(*new.split(".")[1:], path.name)
        if target != path:
            found[path] = target
    return found


def find_new_package(path: Path, package: str, modules: set[str], moves: Mapping[str, str]) -> str:
    """The new package of most imports that a test has of its old package."""
    counts: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            name = f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in modules else node.module
            if name in modules and (name + ".").startswith(package + "."):
                new = build_new_name(name, moves)
                home = new if (SOURCE / Path(*name.split("."))).is_dir() else new.rpartition(".")[0]
                counts[home] = counts.get(home, 0) + 1
    best = max(counts, key=lambda home: (counts[home], home), default=package)
    return best if best != ROOT else package


def main() -> None:
    moves, modules = read_table(Path(sys.argv[1])), list_modules()
    if missing := [old for old in moves if old not in modules]:
        sys.exit("no such module: " + ", ".join(sorted(missing)))
    files = list_file_moves(modules, moves)
    tests = list_test_moves(modules, moves)
    test_paths = {str(old): str(new) for old, new in tests.items()}
    files |= tests
    targets = list(files.values())
    taken = {target for target in targets if targets.count(target) > 1 or (target.exists() and target not in files)}
    if taken:
        sys.exit("two files for one name: " + ", ".join(sorted(map(str, taken))))
    if "--dry-run" in sys.argv:
        for old, new in files.items():
            print(old, "→", new)
        return
    for path in list_text_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        new = text
        if path.suffix == ".py":
            importer = Importer(text, modules, moves)
            new = importer.rewrite()
            for name in importer.kept_names:
                print(f"{path}: keeps the old name: {name}")
        new = rewrite_names(new, modules, moves)
        new = TEST_PATH.sub(lambda match: rewrite_test_path(match[0], test_paths), new)
        if new != text:
            path.write_text(new)
    for old, target in files.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", str(old), str(target)], check=True)


if __name__ == "__main__":
    main()
