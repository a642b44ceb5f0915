"""Parses cells as Python after removing IPython syntax.

In: the source of a cell. Out: its syntax tree, and the lines with shell commands. Never: runs any of it.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.features.notebooks.runner.cells import Notebook

DEEPEST: Final = 150  # levels of a syntax tree
MOST_SOURCE: Final = 1 << 20  # characters of a cell
_PYTHON_MAGICS: Final = ("time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "python3", "python")
_CELL_MAGIC: Final = re.compile(r"\A\s*%%(\w+)([^\n]*)\n?")
_LINE: Final = re.compile(r"^(?P<indent>\s*)(?P<target>[\w., ]+=\s*)?(?P<mark>!!?|%)(?P<rest>.*)$")
_HELP: Final = re.compile(r"^\s*(?:\?{1,2}[%\w.]+|%?[\w.*]+\?{1,2})\s*$")
_AUTOCALL: Final = re.compile(r"^\s*[/,;]\w")


@dataclass(frozen=True)
class Parsed:
    tree: ast.Module | None  # None: another language, or invalid Python
    shell: tuple[int, ...] = ()  # lines with shell commands
    magic: str = ""  # the cell magic, for example "bash"
    options: str = ""  # arguments of the cell magic
    fault: str = ""  # syntax error of a cell that should be Python
    fault_line: int = 0


def parsed(source: str) -> Parsed:
    magic = options = ""
    source = source if len(source) <= MOST_SOURCE else ""
    if found := _CELL_MAGIC.match(source):
        magic, options = found[1], found[2].strip()
        if magic not in _PYTHON_MAGICS:
            return Parsed(None, magic=magic, options=options)
        source = "\n" + source[found.end() :]
    try:
        return Parsed(_shallow(_tree(source)), magic=magic, options=options)
    except (SyntaxError, ValueError, RecursionError):
        pass
    text, shell = _as_python(source)
    try:
        return Parsed(_shallow(_tree(text)), shell, magic, options)
    except SyntaxError as error:
        return Parsed(None, shell, magic, options, error.msg, error.lineno or 0)
    except (ValueError, RecursionError) as error:
        return Parsed(None, shell, magic, options, str(error))


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(text, "<cell>", "exec", flags, dont_inherit=True)
    if not isinstance(tree, ast.Module):
        raise ValueError("not a module")
    return tree


def _shallow(tree: ast.Module) -> ast.Module | None:
    """The tree, or None if it is so deep that walking it would crash this process; people do not write such code."""
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    return None


def _as_python(source: str) -> tuple[str, tuple[int, ...]]:
    """Replace magics and shell commands by placeholders; line numbers stay the same."""
    lines, shell = [], []
    is_continued = False
    for number, line in enumerate(source.split("\n"), 1):
        found = _LINE.match(line)
        if is_continued:
            is_continued = line.endswith("\\")
            lines.append("")
        elif found:
            shell += [number] if found["mark"].startswith("!") else []
            is_continued = line.endswith("\\")
            lines.append(f"{found['indent']}{found['target'] or ''}{'...' if found['target'] else 'pass'}")
        elif _HELP.match(line) or _AUTOCALL.match(line):
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines), tuple(shell)


def is_python(notebook: Notebook) -> bool:
    """True unless the metadata of the notebook names another language."""
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    info, kernel = (metadata.get(part) for part in ("language_info", "kernelspec"))
    named = [info.get("name")] if isinstance(info, Mapping) else []
    named += [kernel.get("language")] if isinstance(kernel, Mapping) else []
    return all(str(name or "python").lower() in ("python", "ipython", "python3") for name in named)
