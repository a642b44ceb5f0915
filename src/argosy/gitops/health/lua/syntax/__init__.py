"""Parses Lua scripts into syntax trees.

In: the text of a script. Out: nodes with line numbers, and the variable of each name. Never: runs a script.
"""

from argosy.gitops.health.lua.syntax.lexer import MAX_SCRIPT_BYTES, LuaSyntaxError
from argosy.gitops.health.lua.syntax.parser import parse

__all__ = ["MAX_SCRIPT_BYTES", "LuaSyntaxError", "parse"]
