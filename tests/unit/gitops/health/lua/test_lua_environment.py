"""Tests the environment of a Lua script, which equals Argo CD's with and without open libraries."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.health.lua import LuaEngine, LuaFault
from argosy.gitops.health.lua.engine import MAX_COMPILED_SCRIPTS, MAX_SCRIPT_LENGTH

CLOSED, OPEN = LuaEngine(open_libs=False), LuaEngine(open_libs=True)
BOTH = pytest.mark.parametrize("engine", [CLOSED, OPEN], ids=["closed", "open"])


def value(engine: LuaEngine, script: str, manifest: dict[str, Any] | None = None, **more: Any) -> Any:
    return engine.run(script, manifest or {}, **more).value


def fault(engine: LuaEngine, script: str, manifest: dict[str, Any] | None = None) -> str:
    with pytest.raises(LuaFault) as caught:
        engine.run(script, manifest or {})
    return str(caught.value)


NAMES = "local names = {} for name in pairs(_G) do names[#names + 1] = name end table.sort(names) return names"
BASE = {
    *("_G", "_VERSION", "assert", "collectgarbage", "dofile", "error", "getfenv", "getmetatable", "ipairs", "load"),
    *("loadfile", "loadstring", "module", "newproxy", "next", "pairs", "pcall", "print", "rawequal", "rawget"),
    *("rawset", "require", "select", "setfenv", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall"),
    *("package", "table", "obj", "actionParams"),
}


def test_closed_environment_has_only_base_package_and_table() -> None:
    assert set(value(CLOSED, NAMES)) == BASE


def test_open_libraries_add_the_standard_ones_but_none_of_luajit() -> None:
    added = {"string", "math", "coroutine", "os", "io", "debug", "channel"}
    assert set(value(OPEN, NAMES)) == BASE | added


@BOTH
@pytest.mark.parametrize("name", ["ffi", "jit", "bit", "python", "gcinfo", "facts"])
def test_globals_that_argo_cd_lacks_do_not_exist(engine: LuaEngine, name: str) -> None:
    assert value(engine, f"return {{type({name})}}") == ["nil"]
    assert value(engine, f"return {{tostring(pcall(require, '{name}'))}}") == ["false"]


@BOTH
def test_require_os_provides_only_time_and_date(engine: LuaEngine) -> None:
    script = "local names = {} for name in pairs(require('os')) do names[#names + 1] = name end table.sort(names) "
    assert value(engine, script + "return names") == ["date", "time"]
    assert value(engine, "return {require('os').date('!%Y-%m-%dT%H:%M:%SZ', 0)}") == ["1970-01-01T00:00:00Z"]


def test_os_is_not_a_global_without_open_libraries() -> None:
    assert "global 'os'" in fault(CLOSED, "return os.time()")


def test_strings_have_no_methods_without_the_string_library() -> None:
    assert "attempt to index" in fault(CLOSED, "return ('x'):upper()")
    assert value(OPEN, "return {('x'):upper()}") == ["X"]


REFUSED = [
    *(f"io.{name}" for name in ("open", "popen", "lines", "read", "write", "tmpfile", "input", "output", "close")),
    *(f"os.{name}" for name in ("execute", "exit", "getenv", "remove", "rename", "tmpname", "setlocale", "setenv")),
    *(f"debug.{name}" for name in ("getregistry", "sethook", "getupvalue", "setupvalue", "setlocal", "getlocal")),
    *("package.loadlib", "dofile", "loadfile", "newproxy", "module", "string.dump", "channel.make"),
]


@pytest.mark.parametrize("name", REFUSED)
def test_functions_with_outside_access_exist_but_are_not_permitted(name: str) -> None:
    assert fault(OPEN, f"local x = {name}('x') return {{}}") == f"<string>:1: {name}: not permitted"


@pytest.mark.parametrize("name", ["dofile", "loadfile", "package.loadlib", "newproxy"])
def test_base_library_functions_cannot_access_files(name: str) -> None:
    assert fault(CLOSED, f"local x = {name}('x') return {{}}") == f"<string>:1: {name}: not permitted"


SEEN = [
    ("return {tostring(obj.missing)}", ["nil"]),
    ("return {tostring(obj.null)}", ["nil"]),
    ("return {tostring(#obj.list), obj.list[2]}", ["2", "b"]),
    ("return {tostring(obj.whole)}", ["3"]),
    ("return {tostring(obj.float)}", ["3"]),
    ("return {tostring(obj.part)}", ["0.30000000000000004"]),
    ("return {tostring(obj.large)}", ["1000000000000000"]),
    ("return {type(obj.huge)}", ["number"]),
    ("return {type(obj.yes), tostring(obj.yes)}", ["boolean", "true"]),
    ("return {tostring(#obj.empty), tostring(next(obj.emptyMap))}", ["0", "nil"]),
    ("return {type(next(actionParams))}", ["nil"]),
]
OBJECT = {
    "null": None, "list": ["a", None, "b"], "whole": 3, "float": 3.0, "part": 0.1 + 0.2, "large": 10**15,
    "huge": 10**30, "yes": True, "empty": [], "emptyMap": {},
}  # fmt: skip


@BOTH
@pytest.mark.parametrize(("script", "expected"), SEEN)
def test_object_is_converted_as_in_argo_cd(engine: LuaEngine, script: str, expected: list[str]) -> None:
    assert value(engine, script, OBJECT) == expected


def test_parameters_and_facts_are_globals() -> None:
    script = "return {actionParams.replicas, type(actionParams.replicas), facts.storageClasses.fast}"
    environment = {"params": {"replicas": "3"}, "facts": {"storageClasses": {"fast": "Immediate"}}}
    assert value(CLOSED, script, **environment) == ["3", "string", "Immediate"]


def test_last_returned_value_is_the_result() -> None:
    assert value(CLOSED, "return 1, {status = 'Healthy'}") == {"status": "Healthy"}


def test_goto_is_supported() -> None:
    script = "for i = 1, 3 do if i == 2 then goto on end obj[i] = i ::on:: end return {obj[1], obj[3]}"
    assert value(CLOSED, script) == [1, 3]


def test_error_names_the_line_and_has_no_stack() -> None:
    assert fault(CLOSED, "local x = 1\nreturn obj.status.phase") == (
        "<string>:2: attempt to index field 'status' (a nil value)"
    )


def test_non_string_error_is_reported_by_its_type() -> None:
    assert fault(CLOSED, "error({})") == "the script raised a table"


def test_syntax_error_is_a_fault_with_its_line() -> None:
    assert fault(CLOSED, "local x = 1\nif x then") == "<string>:2: 'end' expected near '<eof>'"


def test_too_long_script_is_rejected() -> None:
    assert fault(CLOSED, "--" + "x" * MAX_SCRIPT_LENGTH) == f"the script is longer than {MAX_SCRIPT_LENGTH >> 10} KiB"


RESULTS = [
    ("return {}", []),
    ("return {1, 2}", [1, 2]),
    ("return {a = {b = {}}}", {"a": {"b": []}}),
    ("return {a = 1.5, b = 2^53}", {"a": 1.5, "b": 2**53}),
    ("return {['1'] = 'x'}", {"1": "x"}),
]
NO_RESULTS = [
    ("return {a = print}", "cannot encode function to JSON"),
    ("return {1, nil, 3}", "cannot encode sparse array"),
    ("return {1, a = 2}", "cannot encode mixed or invalid key types"),
    ("return {[1.5] = 2}", "cannot encode mixed or invalid key types"),
    ("return {[true] = 2}", "cannot encode mixed or invalid key types"),
    ("obj.obj = obj return obj", "cannot encode recursively nested tables to JSON"),
    ("return {a = 1/0}", "json: unsupported value: inf"),
    ("return {a = '\\255'}", "the script returned or raised a string that is not UTF-8"),
]


@BOTH
@pytest.mark.parametrize(("script", "expected"), RESULTS)
def test_table_is_converted_to_json(engine: LuaEngine, script: str, expected: Any) -> None:
    assert value(engine, script) == expected


@BOTH
@pytest.mark.parametrize(("script", "said"), NO_RESULTS)
def test_table_that_is_not_valid_json_is_a_fault(engine: LuaEngine, script: str, said: str) -> None:
    assert fault(engine, script) == said


def test_loaded_text_uses_the_environment_of_the_script() -> None:
    assert value(CLOSED, "x = 5 return {loadstring('return x')(), load('return obj == nil')()}") == [5, False]


def test_bytecode_is_not_loaded() -> None:
    assert value(CLOSED, "local chunk, problem = loadstring('\\27LJ') return {type(chunk)}") == ["nil"]


def test_compiled_scripts_are_cached_and_the_oldest_is_evicted() -> None:
    engine = LuaEngine(open_libs=False)
    for number in range(MAX_COMPILED_SCRIPTS + 10):
        engine.run(f"return {{{number}}}", {})
    assert len(engine._compiled) == MAX_COMPILED_SCRIPTS
    assert "return {0}" not in engine._compiled
