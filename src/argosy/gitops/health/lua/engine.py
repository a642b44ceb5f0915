"""A Lua state that runs many scripts, each in its own environment.

In: the text of a script and its input data. Out: its result as JSON data. Never: limits time or memory, which is why
users' scripts run only in isolated workers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from importlib import import_module, resources
from typing import Any, Final, NamedTuple

from argosy.gitops.health.lua.projection import Reads, project
from argosy.gitops.health.lua.script_error import LuaFault
from argosy.gitops.health.lua.values import from_lua, lua_ready
from argosy.kube.objects import Manifest

LONGEST_SCRIPT: Final = 256 << 10
OUT_OF_MEMORY: Final = "not enough memory"  # Lua's own message
MOST_COMPILED: Final = 1024
MOST_COMPILED_TEXT: Final = 16 << 20  # characters of all compiled scripts in the cache
# argo: 5.1 has no goto, and versions after 5.2 have integers and print floats with a decimal point
_PREFERRED: Final = ("luajit21", "luajit20", "lua52")


class Answer(NamedTuple):
    """The last value that a script returned: its Lua type, and the value as JSON data."""

    type: str
    value: Any = None


class _Compiled(NamedTuple):
    chunk: Any
    reads: Reads | None
    wants_facts: bool


class Engine:
    """A Lua state, with or without Argo CD's open libraries."""

    def __init__(self, *, open_libs: bool) -> None:
        self._library = _library()
        self._runtime = self._library.LuaRuntime(
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_filter=_refuse_attribute,
        )
        self._runtime.execute("if jit then jit.off() end")
        self._compile, self._run, self._tidy = self._runtime.execute(_environment(), open_libs, name="=environment")
        self._compiled: OrderedDict[str, _Compiled] = OrderedDict()
        self._compiled_text = 0

    def run(
        self,
        script: str,
        manifest: Manifest,
        *,
        params: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
        trusted: bool = False,
    ) -> Answer:
        """Run the script on the manifest. Raises LuaFault."""
        compiled = self._known(script) or self._prepare(script)
        seen = manifest if compiled.reads is None else project(manifest, compiled.reads)
        try:
            is_done, kind, *values = self._run(
                compiled.chunk,
                trusted,
                self._table(seen),
                self._table(facts) if facts and compiled.wants_facts else None,
                self._table(params) if params else None,
            )
            if is_done:
                return self._answer(kind, values)
        except UnicodeError:
            raise LuaFault("the script returned or raised a string that is not UTF-8") from None
        except self._library.LuaError as problem:
            self._tidy()
            raise LuaFault(str(problem) or OUT_OF_MEMORY) from None
        raise LuaFault(kind)

    def _answer(self, kind: str, values: list[Any]) -> Answer:
        if kind == "health":
            status, message = values[0], values[1] if len(values) > 1 else None
            return Answer("table", {"status": status} if message is None else {"status": status, "message": message})
        if kind == "table":
            return Answer(kind, from_lua(values[0], self._library.lua_type))
        return Answer(kind, values[0] if values and isinstance(values[0], str | int | float | bool) else None)

    def _table(self, data: Mapping[str, Any]) -> Any:
        try:
            return self._runtime.table_from(lua_ready(data), recursive=True)
        except UnicodeEncodeError:
            raise LuaFault("the object contains a string that is not UTF-8") from None
        except RecursionError:
            raise LuaFault("the object is nested too deeply") from None

    def _known(self, script: str) -> _Compiled | None:
        compiled = self._compiled.get(script)
        if compiled is not None:
            self._compiled.move_to_end(script)
        return compiled

    def _prepare(self, script: str) -> _Compiled:
        from argosy.gitops.health.lua.field_reads import (
            reads,  # late import: the Lua parser is large, and not every rule is a script
        )

        if len(script) > LONGEST_SCRIPT:
            raise LuaFault(f"the script is longer than {LONGEST_SCRIPT >> 10} KiB")
        try:
            chunk = self._compile(script)
        except UnicodeEncodeError:
            raise LuaFault("the script is not UTF-8") from None
        if isinstance(chunk, tuple):
            raise LuaFault(chunk[1])
        self._compiled_text += len(script)
        compiled = self._compiled[script] = _Compiled(chunk, reads(script), "facts" in script)
        while len(self._compiled) > MOST_COMPILED or self._compiled_text > MOST_COMPILED_TEXT:
            forgotten, _ = self._compiled.popitem(last=False)
            self._compiled_text -= len(forgotten)
        return compiled


@cache
def kept_engine(*, open_libs: bool) -> Engine:
    """Return the shared state of this process, with or without open libraries."""
    return Engine(open_libs=open_libs)


def strangers_engine(*, open_libs: bool) -> Engine:
    """Return a state for a user's script. Only LuaJIT states can be reused safely; other versions get a new state."""
    is_luajit = "luajit" in _library().__name__
    return kept_engine(open_libs=open_libs) if is_luajit else Engine(open_libs=open_libs)


@cache
def _environment() -> str:
    return resources.files(__package__).joinpath("environment.lua").read_text()


@cache
def _library() -> Any:
    for name in _PREFERRED:
        try:
            return import_module(f"lupa.{name}")
        except ImportError:
            continue  # some wheels of lupa have no LuaJIT
    raise ImportError("this build of lupa has no Lua that argosy can use")


def _refuse_attribute(_object: Any, _name: str, _is_setting: bool) -> str:
    raise AttributeError("not permitted")
