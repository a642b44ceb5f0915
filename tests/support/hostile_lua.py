"""Lua scripts that try to hang, exhaust memory, escape the sandbox, or influence the next script.

`STUCK` scripts never end, or run out of memory. `ESCAPES` report whether they reached something outside the sandbox.
`POLLUTERS` modify shared state; `WITNESS` then reports its environment, which must be unchanged.
"""

from __future__ import annotations

STUCK: dict[str, str] = {
    "busy loop": "while true do end",
    "busy repeat": "local n = 0 repeat n = n + 1 until false",
    "goto loop": "::again:: goto again",
    "numeric for": "for i = 1, 1e18 do end",
    "pcall in a loop": "while true do pcall(error, 'x') end",
    "pcall nest": "local function f() pcall(f) f() end pcall(f) while true do pcall(f) end",
    "xpcall whose handler loops": "xpcall(function() error('x') end, function() while true do end end)",
    "error handler that fails": "local function h() xpcall(error, h) end while true do xpcall(error, h) end",
    "recursion kept alive by pcall": "local function f(n) return n + pcall(f, n + 1) end while true do pcall(f, 0) end",
    "endless tail call": "local function f() return f() end f()",
    "endless metamethod": "local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x",
    "endless iterator": "for _ in function() return 1 end do end",
    "endless sort": "local t = {} for i = 1, 1e4 do t[i] = i end table.sort(t, function() while true do end end)",
    "loop in loaded text": "loadstring('while true do end')()",
    "loader that never ends": "load(function() return ' ' end)",
    "coroutine loop": "coroutine.wrap(function() while true do end end)()",
    "coroutine swarm": "while true do coroutine.wrap(function() coroutine.yield() end)() end",
    "coroutines in coroutines": "local function f() coroutine.wrap(f)() end while true do pcall(f) end",
    "coroutine and pcall swarm": "while true do pcall(coroutine.wrap(function() pcall(coroutine.yield) end)) end",
    "backtracking find": "string.find(string.rep('a', 60), string.rep('a?', 60) .. string.rep('a', 60) .. 'b')",
    "backtracking match": "return string.match(string.rep('x', 1e5), string.rep('.-', 12) .. 'y')",
    "backtracking gsub": "return string.gsub(string.rep('(', 1e5), '%b()', ' ')",
    "long gsub": "local s = string.rep('a', 1e6) while true do s = string.gsub(s, 'a', 'a') end",
    "growing text": "local s = 'x' while true do s = s .. s end",
    "growing table": "local t = {} while true do t[#t + 1] = {t} end",
    "growing table kept by pcall": "local t = {} while true do pcall(function() t[#t + 1] = {t, t, t} end) end",
    "a gigabyte at once": "return {message = string.rep('x', 2 ^ 30)}",
    "a gigabyte of concat": "local t = {} for i = 1, 1e6 do t[i] = string.rep('x', 1024) end return {table.concat(t)}",
    "large format": "local s = '' while true do s = string.format('%s%s%99s', s, s, s) end",
    "unpack of millions": "local t = {} for i = 1, 8e6 do t[i] = i end return unpack(t)",
    "deep recursion": "local function f() return 1 + f() end return f()",
    "deep table": "local t = {} local top = t for i = 1, 1e6 do t.t = {} t = t.t end return top",
    "wide table": "local t = {} for i = 1, 3e6 do t['k' .. i] = i end return t",
    "deep source": "return loadstring('return ' .. string.rep('(', 1e6) .. '1' .. string.rep(')', 1e6))()",
    "many locals": "return {type(loadstring('local a ' .. string.rep('local a ', 1e6)))}",
    "finalizer that loops": "getmetatable(newproxy(true)).__gc = function() while true do end end collectgarbage()",
    "waits for input": "io.read('*a') while true do end",
    "math loop": "while true do math.sin(1) end",
    "date loop": "local os = require('os') while true do os.date('%c', os.time()) end",
    "rawset loop": "local t = {} while true do rawset(t, {}, t) end",
}

# Each script is prefixed with a function `got(value)`: a truthy value that is reached without an error is an escape.
ESCAPES: dict[str, str] = {
    "reads a file": "got(io.open('/etc/passwd'))",
    "reads lines": "got(io.lines('/etc/passwd'))",
    "runs a file": "got(dofile('/etc/passwd'))",
    "loads a file": "got(loadfile('/etc/hostname'))",
    "writes a file": "got(io.open('/tmp/argosy-hostile', 'w'))",
    "removes a file": "got(os.remove('/tmp/argosy-hostile'))",
    "renames a file": "got(os.rename('/tmp/a', '/tmp/b'))",
    "names a file": "got(os.tmpname())",
    "makes a file": "got(io.tmpfile())",
    "runs a process": "got(os.execute('id'))",
    "opens a process": "got(io.popen('id'))",
    "ends the process": "got(os.exit(0))",
    "reads the environment": "got(os.getenv('PATH'))",
    "changes the locale": "got(os.setlocale('C'))",
    "loads a library": "got(package.loadlib('libc.so.6', '*'))",
    "finds a searcher": "got(package.loaders[1])",
    "requires ffi": "got(require('ffi'))",
    "requires jit": "got(require('jit'))",
    "requires the real os": "got(require('os').execute)",
    "requires debug of the state": "got(require('debug').getregistry())",
    "names ffi": "got(ffi)",
    "names jit": "got(jit)",
    "names python": "got(python)",
    "names python in the real globals": "got(getfenv(0).python)",
    "environment of a function of the state": "got(getfenv(print).python or getfenv(print).io_real)",
    "real globals by level": "for level = 0, 20 do local ok, g = pcall(getfenv, level) got(ok and g ~= _G and g) end",
    "real globals by setfenv": "got(setfenv(0, {}))",
    "environment of print": "got(setfenv(print, {}))",
    "registry": "got(debug.getregistry())",
    "upvalues": "got(debug.getupvalue(require, 1))",
    "locals of the caller": "got(debug.getlocal(2, 1))",
    "function of the caller": "got(debug.getinfo(2).func)",
    "hook": "got(debug.sethook(function() end, 'l'))",
    "metatable of strings": "got(getmetatable('') or nil)",
    "metatable of functions": "got(getmetatable(print))",
    "new metatable of strings": "got(debug.setmetatable('', {}))",
    "bytecode": "got(loadstring(string.dump(function() end)))",
    "forged bytecode": "got(loadstring('\\27LJ\\2\\0\\0'))",
    "finalizer": "got(newproxy(true))",
    "attributes of the object": "got(obj.__class__ or obj.__init__ or obj.__dict__)",
    "methods of the object": "got(pcall(function() return obj:items() end) or nil)",
    "attributes of the parameters": "got(actionParams.__class__)",
    "userdata anywhere": (
        "local seen = {} local function walk(v) if seen[v] then return end "
        "if type(v) == 'userdata' or type(v) == 'cdata' then got(v) end "
        "if type(v) == 'table' then seen[v] = true for k, w in next, v do walk(k) walk(w) end "
        "walk(getmetatable(v)) end end walk(_G)"
    ),
    "channel of goroutines": "got(channel.make())",
    "module": "got(module('x'))",
}
GOT = "local escaped = false local function got(value) if value then escaped = true end end pcall(function() %s end) "
VERDICT = "return {escaped and 'escaped' or 'held'}"


def escape(script: str) -> str:
    return GOT % script + VERDICT


POLLUTERS: dict[str, str] = {
    "global": "x = 1 _G.y = 2",
    "base function": "pairs = nil tostring = function() return 'mine' end",
    "table library": "table.insert = nil table.concat = function() return 'mine' end",
    "string library": "string.upper = function() return 'mine' end string.format = nil",
    "methods of strings": "getmetatable('').__index.upper = function() return 'mine' end",
    "methods of strings by debug": "debug.getmetatable('').__index = nil",
    "math library": "math.floor = nil math.huge = 1",
    "random": "math.randomseed(7) math.random()",
    "coroutine library": "coroutine.wrap = nil",
    "os library": "os.time = nil",
    "safe os": "require('os').time = function() return 'mine' end require('os').extra = 1",
    "loaded modules": "package.loaded.os = 'mine' package.loaded.mine = 1 package.preload.mine = function() end",
    "metatable of globals": "setmetatable(_G, {__index = function() return 'mine' end, __newindex = function() end})",
    "own environment": "setfenv(1, {obj = 'mine'})",
    "environment of the thread": "setfenv(0, {})",
    "object": "obj.status = 'mine' obj.metadata.name = 'mine'",
    "parameters": "actionParams.x = 'mine'",
    "locale": "os.setlocale('de_DE.UTF-8')",
    "failure in a coroutine": "coroutine.wrap(function() x = 1 error('x') end)()",
}
POLLUTE = "pcall(function() %s end) return {}"
WITNESS = """
local os = require('os')
local seen = {
  tostring(x), tostring(y), tostring(extra), type(pairs), tostring(5), type(table.insert), table.concat({'a', 'b'}),
  type(os.time()), tostring(os.extra), type(require('os').time()), tostring(package.loaded.mine),
  tostring(package.preload.mine), tostring(getmetatable(_G)), type(obj), obj.metadata.name, tostring(obj.status),
  tostring(actionParams.x), tostring(getfenv(1) == _G),
}
if string then
  for _, more in ipairs({
    ('x'):upper(), string.format('%s', 'a'), tostring(math.floor(1.5)), tostring(math.huge > 1),
    string.format('%.6f', math.random()), type(coroutine.wrap), type(_G.os.time()),
  }) do seen[#seen + 1] = more end
end
return seen
"""
