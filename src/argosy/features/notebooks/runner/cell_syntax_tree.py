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

from argosy.features.notebooks.runner.cell_source_and_tags import Notebook

MAX_TREE_DEPTH: Final = 150  # levels of a syntax tree
MAX_SOURCE_CHARACTERS: Final = 1 << 20  # characters of a cell
_PYTHON_MAGICS: Final = ("time", "timeit", "capture", "prun", "memit", "mprun", "lprun", "python3", "python")
_CELL_MAGIC: Final = re.compile(r"\A\s*%%(\w+)([^\n]*)\n?")
_MAGIC_LINE: Final = re.compile(r"^(?P<indent>\s*)(?P<target>[\w., ]+=\s*)?(?P<mark>!!?|%)(?P<rest>.*)$")
_HELP: Final = re.compile(r"^\s*(?:\?{1,2}[%\w.]+|%?[\w.*]+\?{1,2})\s*$")
_AUTOCALL: Final = re.compile(r"^\s*[/,;]\w")


@dataclass(frozen=True)
class ParsedCell:
    tree: ast.Module | None  # None: another language, or invalid Python
    shell_lines: tuple[int, ...] = ()  # lines with shell commands
    magic: str = ""  # the cell magic, for example "bash"
    options: str = ""  # arguments of the cell magic
    syntax_error: str = ""  # syntax error of a cell that should be Python
    syntax_error_line: int = 0


def parse_cell(source: str) -> ParsedCell:
    magic = options = ""
    source = source if len(source) <= MAX_SOURCE_CHARACTERS else ""
    if magic_match := _CELL_MAGIC.match(source):
        magic, options = magic_match[1], magic_match[2].strip()
        if magic not in _PYTHON_MAGICS:
            return ParsedCell(None, magic=magic, options=options)
        source = "\n" + source[magic_match.end() :]
    try:
        return ParsedCell(_reject_deep_tree(_parse_tree(source)), magic=magic, options=options)
    except (SyntaxError, ValueError, RecursionError):
        pass
    text, shell_lines = _replace_magics(source)
    try:
        return ParsedCell(_reject_deep_tree(_parse_tree(text)), shell_lines, magic, options)
    except SyntaxError as error:
        return ParsedCell(None, shell_lines, magic, options, error.msg, error.lineno or 0)
    except (ValueError, RecursionError) as error:
        return ParsedCell(None, shell_lines, magic, options, str(error))


def _parse_tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        tree = compile(text, "<cell>", "exec", flags, dont_inherit=True)
    if not isinstance(tree, ast.Module):
        raise ValueError("not a module")
    return tree


def _reject_deep_tree(tree: ast.Module) -> ast.Module | None:
    """The tree, or None if it is so deep that walking it would crash this process; people do not write such code."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_TREE_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return tree
    return None


def _replace_magics(source: str) -> tuple[str, tuple[int, ...]]:
    """Replace magics and shell commands by placeholders; line numbers stay the same."""
    lines, shell_lines = [], []
    is_continued = False
    for number, line in enumerate(source.split("\n"), 1):
        magic_match = _MAGIC_LINE.match(line)
        if is_continued:
            is_continued = line.endswith("\\")
            lines.append("")
        elif magic_match:
            shell_lines += [number] if magic_match["mark"].startswith("!") else []
            is_continued = line.endswith("\\")
            lines.append(
                f"{magic_match['indent']}{magic_match['target'] or ''}{'...' if magic_match['target'] else 'pass'}"
            )
        elif _HELP.match(line) or _AUTOCALL.match(line):
            lines.append("")
        else:
            lines.append(line)
    return "\n".join(lines), tuple(shell_lines)


def is_python_notebook(notebook: Notebook) -> bool:
    """True unless the metadata of the notebook names another language."""
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    info, kernelspec = (metadata.get(part) for part in ("language_info", "kernelspec"))
    languages = [info.get("name")] if isinstance(info, Mapping) else []
    languages += [kernelspec.get("language")] if isinstance(kernelspec, Mapping) else []
    return all(str(name or "python").lower() in ("python", "ipython", "python3") for name in languages)
