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

from argosy.gitops.health.lua.manifest_projection import FieldReads, project_manifest
from argosy.gitops.health.lua.script_error import LuaFault
from argosy.gitops.health.lua.value_conversion import from_lua, prepare_for_lua
from argosy.kube.objects import Manifest

MAX_SCRIPT_LENGTH: Final = 256 << 10
OUT_OF_MEMORY_MESSAGE: Final = "not enough memory"  # Lua's own message
MAX_COMPILED_SCRIPTS: Final = 1024
MAX_COMPILED_CHARACTERS: Final = 16 << 20  # characters of all compiled scripts in the cache
# argo: 5.1 has no goto, and versions after 5.2 have integers and print floats with a decimal point
_LUA_VERSIONS: Final = ("luajit21", "luajit20", "lua52")


class ScriptResult(NamedTuple):
    """The last value that a script returned: its Lua type, and the value as JSON data."""

    type: str
    value: Any = None


class _CompiledScript(NamedTuple):
    chunk: Any
    reads: FieldReads | None
    wants_facts: bool


class LuaEngine:
    """A Lua state, with or without Argo CD's open libraries."""

    def __init__(self, *, open_libs: bool) -> None:
        self._lua_library = _import_lua_library()
        self._runtime = self._lua_library.LuaRuntime(
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            attribute_filter=_refuse_attribute,
        )
        self._runtime.execute("if jit then jit.off() end")
        self._compile, self._run, self._collect_garbage = self._runtime.execute(
            _load_environment_script(), open_libs, name="=environment"
        )
        self._compiled: OrderedDict[str, _CompiledScript] = OrderedDict()
        self._compiled_characters = 0

    def run(
        self,
        script: str,
        manifest: Manifest,
        *,
        params: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
        trusted: bool = False,
    ) -> ScriptResult:
        """Run the script on the manifest. Raises LuaFault."""
        compiled = self._find_compiled(script) or self._compile_script(script)
        projected = manifest if compiled.reads is None else project_manifest(manifest, compiled.reads)
        try:
            succeeded, kind, *values = self._run(
                compiled.chunk,
                trusted,
                self._to_lua_table(projected),
                self._to_lua_table(facts) if facts and compiled.wants_facts else None,
                self._to_lua_table(params) if params else None,
            )
            if succeeded:
                return self._build_result(kind, values)
        except UnicodeError:
            raise LuaFault("the script returned or raised a string that is not UTF-8") from None
        except self._lua_library.LuaError as problem:
            self._collect_garbage()
            raise LuaFault(str(problem) or OUT_OF_MEMORY_MESSAGE) from None
        raise LuaFault(kind)

    def _build_result(self, kind: str, values: list[Any]) -> ScriptResult:
        if kind == "health":
            status, message = values[0], values[1] if len(values) > 1 else None
            return ScriptResult(
                "table", {"status": status} if message is None else {"status": status, "message": message}
            )
        if kind == "table":
            return ScriptResult(kind, from_lua(values[0], self._lua_library.lua_type))
        return ScriptResult(kind, values[0] if values and isinstance(values[0], str | int | float | bool) else None)

    def _to_lua_table(self, data: Mapping[str, Any]) -> Any:
        try:
            return self._runtime.table_from(prepare_for_lua(data), recursive=True)
        except UnicodeEncodeError:
            raise LuaFault("the object contains a string that is not UTF-8") from None
        except RecursionError:
            raise LuaFault("the object is nested too deeply") from None

    def _find_compiled(self, script: str) -> _CompiledScript | None:
        compiled = self._compiled.get(script)
        if compiled is not None:
            self._compiled.move_to_end(script)
        return compiled

    def _compile_script(self, script: str) -> _CompiledScript:
        from argosy.gitops.health.lua.field_reads import (
            find_field_reads,  # late import: the Lua parser is large, and not every rule is a script
        )

        if len(script) > MAX_SCRIPT_LENGTH:
            raise LuaFault(f"the script is longer than {MAX_SCRIPT_LENGTH >> 10} KiB")
        try:
            chunk = self._compile(script)
        except UnicodeEncodeError:
            raise LuaFault("the script is not UTF-8") from None
        if isinstance(chunk, tuple):
            raise LuaFault(chunk[1])
        self._compiled_characters += len(script)
        compiled = self._compiled[script] = _CompiledScript(chunk, find_field_reads(script), "facts" in script)
        while len(self._compiled) > MAX_COMPILED_SCRIPTS or self._compiled_characters > MAX_COMPILED_CHARACTERS:
            evicted, _ = self._compiled.popitem(last=False)
            self._compiled_characters -= len(evicted)
        return compiled


@cache
def shared_engine(*, open_libs: bool) -> LuaEngine:
    """Return the shared state of this process, with or without open libraries."""
    return LuaEngine(open_libs=open_libs)


def user_script_engine(*, open_libs: bool) -> LuaEngine:
    """Return a state for a user's script. Only LuaJIT states can be reused safely; other versions get a new state."""
    is_luajit = "luajit" in _import_lua_library().__name__
    return shared_engine(open_libs=open_libs) if is_luajit else LuaEngine(open_libs=open_libs)


@cache
def _load_environment_script() -> str:
    return resources.files(__package__).joinpath("environment.lua").read_text()


@cache
def _import_lua_library() -> Any:
    for name in _LUA_VERSIONS:
        try:
            return import_module(f"lupa.{name}")
        except ImportError:
            continue  # some wheels of lupa have no LuaJIT
    raise ImportError("this build of lupa has no Lua that argosy can use")


def _refuse_attribute(_object: Any, _name: str, _is_setting: bool) -> str:
    raise AttributeError("not permitted")
