"""Lua scripts as trees.

In: a script's text. Out: nodes with line numbers, and which name means which variable. Never: runs anything.
"""

from argosy.gitops.health.lua.syntax.lexer import MOST_TEXT, LuaSyntaxError
from argosy.gitops.health.lua.syntax.parser import parse

__all__ = ["MOST_TEXT", "LuaSyntaxError", "parse"]
