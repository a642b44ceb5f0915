-- Environment of scripts, and the functions that compile and run them. Loaded once into a new state.
--
-- In: `is_open`: true if this state has Argo CD's open libraries. Out: compile, run.
-- Never: gives a script a table that another run can see, a function that reaches a file, a process or the
-- environment, or the globals of the state.

local is_open = ...

local real = {
  assert = assert, error = error, getfenv = getfenv, getmetatable = getmetatable, ipairs = ipairs, load = load,
  loadstring = loadstring or load, next = next, pairs = pairs, pcall = pcall, rawequal = rawequal, rawget = rawget,
  rawset = rawset, select = select, setfenv = setfenv, setmetatable = setmetatable, tonumber = tonumber,
  tostring = tostring, type = type, unpack = unpack or table.unpack, xpcall = xpcall,
}
local globals, string, math, table, coroutine, os, debug = _G, string, math, table, coroutine, os, debug
local type, error, select, pcall, next, collect = type, error, select, pcall, next, collectgarbage
local format, floor, setmetatable = string.format, math.floor, setmetatable

-- Empty the real globals: a script that reaches them in an unknown way finds nothing.
for name in next, globals do globals[name] = nil end
if is_open then
  -- A script may call methods of strings, but not change their shared metatable.
  local of_strings = debug.getmetatable("")
  of_strings.__index = {
    byte = string.byte, char = string.char, find = string.find, format = string.format, gmatch = string.gmatch,
    gsub = string.gsub, len = string.len, lower = string.lower, match = string.match, rep = string.rep,
    reverse = string.reverse, sub = string.sub, upper = string.upper,
  }
  of_strings.__metatable = false
else
  debug.setmetatable("", nil)  -- argo: without the string library, ("x"):upper() fails
end

local function refused(name)
  return function() error(name .. ": not permitted", 2) end
end

local function refusing(library, names)
  local made = {}
  for name in string.gmatch(names, "%a+") do made[name] = refused(library .. "." .. name) end
  return made
end

-- argo: integers are printed in full, other numbers in Go's shortest form
local function number_text(number)
  if number ~= number then return "NaN" end
  if number == 1 / 0 then return "+Inf" elseif number == -1 / 0 then return "-Inf" end
  if number == floor(number) then return format("%.0f", number) end
  for digits = 14, 17 do
    local text = format("%." .. digits .. "g", number)
    if real.tonumber(text) == number then return text end
  end
end

local function safe_tostring(...)
  if select("#", ...) > 0 and type((...)) == "number" then return number_text((...)) end
  return real.tostring(...)
end

-- The same for numbers that are concatenated.
local function concat(list, ...)
  local texts = {}
  for place, part in next, list do texts[place] = type(part) == "number" and number_text(part) or part end
  return table.concat(texts, ...)
end

local function formatted(pattern, ...)
  if type(pattern) ~= "string" or not string.find(pattern, "%%[-0-9.]*s") then return format(pattern, ...) end
  local values, place = { ... }, 0
  for kind in string.gmatch(string.gsub(pattern, "%%%%", ""), "%%[-+ #0-9.]*(%a)") do
    place = place + 1
    if kind == "s" and type(values[place]) == "number" then values[place] = number_text(values[place]) end
  end
  return format(pattern, real.unpack(values, 1, select("#", ...)))
end

local function bind(chunk, environment)
  if real.setfenv then return real.setfenv(chunk, environment) end
  debug.setupvalue(chunk, 1, environment)  -- Lua 5.2 and later keep the globals in an upvalue
  return chunk
end

-- A chunk from text. Bytecode is refused: a forged one can reach the memory of the process.
local function compile(text, name)
  return real.loadstring(text, name or "=<string>", "t")
end

local function loaders(environment)
  local function loaded(text, name)
    if type(text) ~= "string" then error("bad argument #1 (string expected)", 2) end
    local chunk, problem = compile(text, name)
    if not chunk then return nil, problem end
    return bind(chunk, environment)
  end
  local function load(part, name)
    if type(part) == "string" then return loaded(part, name) end
    local parts = {}
    for piece in part do
      if piece == "" then break end
      parts[#parts + 1] = piece
    end
    return loaded(table.concat(parts), name)
  end
  -- Never returns or changes the environment of a function of the state itself.
  local function getfenv(which)
    if type(which) ~= "function" or not real.getfenv then return environment end
    local found = real.getfenv(which)
    return found == globals and environment or found
  end
  local function setfenv(which, with)
    if type(with) ~= "table" then error("bad argument #2 to 'setfenv' (table expected)", 2) end
    if not real.setfenv then error("setfenv: not permitted", 2) end
    if type(which) == "number" then
      if which < 1 then error("setfenv: not permitted", 2) end
      which = debug.getinfo(which + 1, "f")
      which = which and which.func
    end
    if type(which) ~= "function" or real.getfenv(which) == globals then error("setfenv: not permitted", 2) end
    return real.setfenv(which, with)
  end
  return loaded, load, getfenv, setfenv
end

-- argo: require("os") has only time and date, also with the open libraries
local function safe_os()
  return { time = os.time, date = os.date }
end

local function packages(environment)
  local package = {
    loaded = {}, preload = {}, loaders = {}, path = "", cpath = "", config = "/\n;\n?\n!\n-",
    loadlib = refused("package.loadlib"),
    seeall = function(module)
      return setmetatable(module, { __index = environment })
    end,
  }
  local required_os = safe_os()
  local function require(name)
    if name == "os" then return required_os end
    local found = package.loaded[name]
    if found ~= nil then return found end
    local load = package.preload[name]
    if type(load) ~= "function" then
      error("module " .. safe_tostring(name) .. " not found:\n\tno field package.preload['" .. safe_tostring(name) .. "']", 2)
    end
    local made = load(name)
    package.loaded[name] = made == nil and true or made
    return package.loaded[name]
  end
  return package, require
end

local function base(environment)
  for name, value in next, real do environment[name] = value end
  environment._G = environment
  environment._VERSION = "GopherLua 0.1"
  environment.tostring = safe_tostring
  environment.print = function() end
  environment.collectgarbage = function() return 0 end
  environment.dofile = refused("dofile")
  environment.loadfile = refused("loadfile")
  environment.module = refused("module")
  environment.newproxy = refused("newproxy")  -- its finalizer would run during another script
  environment.loadstring, environment.load, environment.getfenv, environment.setfenv = loaders(environment)
  environment.table = {
    concat = concat, getn = table.getn or function(list) return #list end, insert = table.insert,
    maxn = table.maxn, remove = table.remove, sort = table.sort,
  }
  environment.package, environment.require = packages(environment)
  environment.package.loaded._G = environment
  environment.package.loaded.table = environment.table
  environment.package.loaded.package = environment.package
end

local function copied(library)
  local copy = {}
  for name, value in next, library do copy[name] = value end
  return copy
end

-- The generator of the state would leak information from one script to the next.
local function randomness()
  local state = 1
  local function draw()
    state = state * 16807 % 2147483647
    return state / 2147483647
  end
  local function random(low, high)
    if low == nil then return draw() end
    if high == nil then low, high = 1, low end
    if low > high then error("bad argument to 'random' (interval is empty)", 2) end
    return floor(low + draw() * (high - low + 1))
  end
  return random, function(seed) state = floor(real.tonumber(seed) or 0) % 2147483646 + 1 end
end

local function opened(environment)
  local made = { string = copied(debug.getmetatable("").__index), math = copied(math), coroutine = copied(coroutine) }
  made.string.gfind, made.string.format, made.string.dump = made.string.gmatch, formatted, refused("string.dump")
  made.os = refusing("os", "execute exit getenv remove rename setenv setlocale tmpname")
  made.os.time, made.os.date, made.os.clock, made.os.difftime = os.time, os.date, os.clock, os.difftime
  made.io = refusing("io", "close flush input lines open output popen read tmpfile type write")
  made.debug = refusing("debug", "debug getfenv gethook getlocal getregistry getupvalue setfenv sethook setlocal "
    .. "setupvalue upvalueid upvaluejoin")
  made.debug.getmetatable, made.debug.setmetatable = real.getmetatable, real.setmetatable
  made.debug.traceback = function(text) return text == nil and "" or text end
  made.debug.getinfo = function(level)
    local found = type(level) == "number" and debug.getinfo(level + 1, "Sl")
    return found and { currentline = found.currentline, short_src = found.short_src, what = found.what } or nil
  end
  made.math.random, made.math.randomseed = randomness()
  made.channel = refusing("channel", "make select")  -- argo: gopher-lua's own, between its goroutines
  for name, library in next, made do
    environment[name] = library
    environment.package.loaded[name] = library
  end
end

-- argo: the last returned value counts
local function last(is_done, ...)
  local count = select("#", ...)
  local value = nil
  if count > 0 then value = select(count, ...) end
  if not is_done then return false, type(value) == "string" and value or "the script raised a " .. type(value) end
  local kind = type(value)
  if kind ~= "table" then return true, kind, value end
  -- Nearly all checks return two strings, which are passed directly; other results are passed as a table.
  local status, message = nil, nil
  for name, part in next, value do
    if type(part) ~= "string" then return true, kind, value end
    if name == "status" then status = part
    elseif name == "message" then message = part
    else return true, kind, value end
  end
  if status == nil then return true, kind, value end
  return true, "health", status, message
end

local shared = {}
base(shared)
if is_open then opened(shared) end
local from_shared = { __index = shared }

-- Collect garbage in the time of the script that made it, so that the next script does not run out of memory.
local LEAST_KIB = 16384
local most = LEAST_KIB
local function tidy(...)
  if collect("count") > most then
    collect()
    most = math.max(LEAST_KIB, 2 * collect("count"))
  end
  return ...
end

-- A user's script gets its own copy of the libraries. Bundled scripts share one and must not change it.
local function run(chunk, is_trusted, obj, facts, params)
  local environment
  if is_trusted then
    environment = setmetatable({}, from_shared)
  else
    environment = {}
    base(environment)
    if is_open then opened(environment) end
  end
  environment.obj, environment.facts, environment.actionParams = obj, facts, params or {}
  return tidy(last(pcall(bind(chunk, environment))))
end

return compile, run, tidy
