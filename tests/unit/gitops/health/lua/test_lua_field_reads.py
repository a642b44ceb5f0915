"""Tests that only the fields a script reads are converted to Lua, and that no script can tell the difference."""

from __future__ import annotations

import timeit
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa.luajit21 import LuaRuntime

from argosy.gitops.health.lua.field_reads import find_field_reads
from argosy.gitops.health.lua.manifest_projection import project_manifest
from support.proof_scale import is_full

ALL = None  # the whole value
THERE = ()  # only whether it exists


def plain(reads: Any) -> Any:
    return {name: plain(below) for name, below in reads} if reads else reads


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("return {}", THERE),
        ("return {m = obj.a.b}", {"a": {"b": ALL}}),
        ('return {m = obj["a"]["b"]}', {"a": {"b": ALL}}),
        ("if obj.a ~= nil and obj.a.b then return {} end", {"a": {"b": THERE}}),
        ("if not obj.a then return {} end", {"a": THERE}),
        ("if obj.a.b == 'x' then return {} end", {"a": {"b": THERE}}),
        ("return {m = 'x' .. obj.a.b}", {"a": {"b": THERE}}),
        ("return {m = obj.a.b + 1}", {"a": {"b": THERE}}),
        ("return {m = #obj.a.b}", {"a": {"b": ALL}}),
        ("return {m = type(obj.a.b)}", {"a": {"b": THERE}}),
        ("type = print return {m = type(obj.a.b)}", {"a": {"b": ALL}}),
        ("for i, c in ipairs(obj.a.b) do end", {"a": {"b": ALL}}),
        ("return {m = obj.a[k].b}", {"a": ALL}),
        ("return {m = obj.a[1]}", {"a": ALL}),
        ("f(obj.a.b)", {"a": {"b": ALL}}),
        ("obj.a:f()", {"a": ALL}),
        ("local s = obj.a return {m = s.b}", {"a": {"b": ALL}}),
        ("local s = obj.a if s == nil then return {} end return {m = s.b.c}", {"a": {"b": {"c": ALL}}}),
        ("local s = obj.a s = 1 return {m = s}", {"a": ALL}),
        ("local s = obj.a or {} return {m = s.b}", {"a": {"b": ALL}}),
        ("local s = obj.a and obj.a.b or obj.c return {m = s.d}", {"a": {"b": {"d": ALL}}, "c": {"d": ALL}}),
        ("return {m = (obj.a or {}).b}", {"a": {"b": ALL}}),
        ("obj.a = obj.a or {} return {m = obj.a.b}", {"a": {"b": ALL}}),
        ("obj.a = obj.b return {m = obj.a.c}", {"a": {"c": ALL}, "b": ALL}),
        ("obj.a.b = 1", {"a": THERE}),
        ("local t = {obj.a, x = obj.b}", {"a": ALL, "b": ALL}),
        ("local o = obj return {m = o.a}", {"a": ALL}),
        ("local function f(obj) return obj.a end return f({})", THERE),
        ('local os = require("os") return {m = obj.a}', {"a": ALL}),
        ("x = function() return obj.a.b end", {"a": {"b": ALL}}),
        ("local a, b = obj.a, obj.b if a == b.c then return {} end", {"a": THERE, "b": {"c": THERE}}),
        ("if obj.a.b then f(obj.a) end", {"a": ALL}),
    ],
)
def test_fields_read_by_a_script_are_found(script: str, expected: Any) -> None:
    assert plain(find_field_reads(script)) == expected


@pytest.mark.parametrize(
    "script",
    [
        "return obj",
        "f(obj)",
        "for k, v in pairs(obj) do end",
        "local t = {obj}",
        "x = obj",
        "obj = {}",
        "return obj[k]",
        "obj:f()",
        "return _G.obj.a",
        "return getfenv().obj",
        "setfenv(1, {})",
        'load("return obj")()',
        'loadstring("return obj")()',
        'require("debug")',
        "require(x)",
        "local r = require",
        "local x x = obj",
        "return (obj or 1).a, obj or 1",
        "this is not Lua",
    ],
)
def test_all_fields_are_read_if_the_object_escapes(script: str) -> None:
    assert find_field_reads(script) is None


def test_projection_keeps_missing_fields_missing_and_scalars() -> None:
    reads = find_field_reads(
        "return {m = obj.a.b, n = obj.c.d, o = obj.e.f, p = obj.g == nil, q = obj.h == nil, r = obj.i.j.k}"
    )
    assert reads is not None
    manifest = {"a": {"x": 1}, "c": "text", "g": {"x": 1}, "h": [1, 2], "i": {"j": [1]}, "z": 1, "e": None}
    assert project_manifest(manifest, reads) == {"a": {}, "c": "text", "g": {}, "h": [], "i": {"j": [1]}}


def test_field_reads_are_hashable() -> None:
    assert hash(find_field_reads("return {m = obj.a.b}")) == hash(find_field_reads("local t = obj.a return {m = t.b}"))


def test_projection_takes_less_than_20_microseconds() -> None:
    reads = find_field_reads(
        "local n = obj.metadata.generation for i, c in ipairs(obj.status.conditions) do f(c, n) end"
    )
    assert plain(reads) == {"metadata": {"generation": ALL}, "status": {"conditions": ALL}}
    manifest = {"metadata": {"generation": 2, "name": "x"}, "spec": {}, "status": {"conditions": [{}], "x": 1}}
    best = min(timeit.repeat(lambda: project_manifest(manifest, reads or ()), number=1000, repeat=5)) / 1000
    assert best < 20e-6


# -- random scripts on random manifests ----------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(st.sampled_from(["x", "y", "", 0, 1, True, False, None]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.dictionaries(KEYS, inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=12,
)
MANIFESTS = st.dictionaries(KEYS, VALUES, max_size=3)
CHAINS = st.builds(
    lambda root, keys, quoted: root + "".join(f'["{key}"]' if quoted else f".{key}" for key in keys),
    st.sampled_from(["obj", "obj", "obj", "s", "t", "u"]),
    st.lists(KEYS, max_size=3),
    st.booleans(),
)
TEMPLATES = st.sampled_from(
    [
        "put({0})",
        "if {0} then put(1) else put(2) end",
        "if {0} == nil then put(3) end",
        "if {0} ~= nil and {1} == 'x' then put(4) elseif not {2} then put(5) end",
        "if {0} == {1} then put(6) end",
        "put('m' .. {0})",
        "put({0} or {1})",
        "put({0} and {1} or {2})",
        "local s = {0}",
        "local s = {0} or {{}}",
        "local t = {0} and {1} or {2}",
        "local t, s = {0}, {1}",
        "local u = {0} t = {1}",
        "s = {0}",
        "{0}.a = {1}",
        "{0}.b = {0}.b or {{}}",
        "{0}.a, {1}.b = {1}.a, {0}.b",
        "{0}.c = nil",
        "{0}[k] = {1}",
        "put(({0} or {{}}).a)",
        "put(({0} or {1}).b.c)",
        "put({0}[k])",
        "put({0}[1])",
        "put(#{0})",
        "put(type({0}))",
        "for k, v in pairs({0}) do put(k) put(v) end",
        "for i, v in ipairs({0} or {{}}) do put(v.a) end",
        "for k in next, {0} do put(k) end",
        "while {0} do put(7) break end",
        "repeat local s = {0} until s == {1} or true",
        "local f = function(s) put(s.a) return {1} end put(f({0}))",
        "(function() local s = {0} put(s) end)()",
        "local function g(obj) put(obj.a) end g({0})",
        "pcall(function() put({0}.a.b) end)",
        "do local obj = {0} put(obj.b) end",
        "w = {0} put(w.a)",
        "put({{ {0}, x = {1} }})",
        "put(rawget({0}, 'a'))",
        "if {0} < {1} then put(8) end",
        "put(tonumber({0}))",
        "local keyed = {{}} if {0} ~= nil then keyed[{0}] = 1 end for k in pairs(keyed) do put(k) end",
        "local keyed = {{x = 1}} put(keyed[{0} or 'x'])",
        "local odd = setmetatable({{}}, {{__concat = function(a, b) return put(b) end}}) local _ = odd .. {0}",
        "local odd = setmetatable({{}}, {{__index = function(t, k) return put(k) end}}) local _ = odd[{0}]",
        "local odd = setmetatable({{}}, {{__newindex = function(t, k, v) put(k) end}}) odd[{0}] = 1",
        "local odd = setmetatable({{}}, {{__add = function(a, b) return put(b) end}}) local _ = odd + {0}",
        "setmetatable({0}, {{__index = function() return 9 end}})",
    ]
)
LINES = st.builds(lambda line, one, two, three: line.format(one, two, three), TEMPLATES, CHAINS, CHAINS, CHAINS)
SCRIPTS = st.lists(LINES, min_size=1, max_size=6).map(lambda lines: "local s, t, u\nlocal k = 'a'\n" + "\n".join(lines))
SCRIPTS_WITH_ALIASES = st.builds(
    lambda first, lines: f"local k = 'a' local s = {first} local t = s\n" + "\n".join(lines),
    CHAINS,
    st.lists(LINES, max_size=5),
)

RUNTIME = LuaRuntime(unpack_returned_tuples=True)
RUN = RUNTIME.execute("""
  return function(text, given)
    local said, seen = {}, 0
    local function tell(value, depth)
      if type(value) ~= "table" then said[#said + 1] = type(value) .. tostring(value) return end
      if depth > 5 then return end
      local keys = {}
      for key in pairs(value) do keys[#keys + 1] = key end
      table.sort(keys, function(one, two) return tostring(one) < tostring(two) end)
      said[#said + 1] = "{"
      for _, key in ipairs(keys) do tell(key, depth + 1) tell(value[key], depth + 1) end
      said[#said + 1] = "}"
    end
    local globals = setmetatable({obj = given, put = function(value) tell(value, 0) end}, {__index = _G})
    local chunk, problem = loadstring(text, "=<string>")
    if not chunk then return problem end
    local ok, fault = pcall(setfenv(chunk, globals))
    return table.concat(said, " ") .. " " .. tostring(ok) .. " " .. tostring(fault)
  end
""")


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in value if part is not None]
    return value


def ran(script: str, manifest: dict[str, Any]) -> str:
    return str(RUN(script, RUNTIME.table_from(without_nulls(manifest), recursive=True)))


@given(st.one_of(SCRIPTS, SCRIPTS_WITH_ALIASES), MANIFESTS)
@pytest.mark.tier("test", "prove")
@settings(max_examples=1500 if is_full() else 120, deadline=None)
def test_no_script_can_distinguish_projected_from_full_manifest(script: str, manifest: dict[str, Any]) -> None:
    reads = find_field_reads(script)
    if reads is not None:
        assert ran(script, project_manifest(manifest, reads)) == ran(script, manifest)
