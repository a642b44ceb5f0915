-- Parameters are texts. tostring(...) == given refuses what Lua alone would take for a number: 0x10, 1e2, " 3".
local given = actionParams["replicas"]
if given == nil or given == "" then
  error("scale needs the parameter replicas: a whole number from 0 to 2147483647", 0)
end
local replicas = tonumber(given)
if replicas == nil or tostring(replicas) ~= given or replicas % 1 ~= 0 or replicas < 0 or replicas > 2147483647 then
  error("replicas must be a whole number from 0 to 2147483647, not \"" .. given .. "\"", 0)
end
obj.spec.replicas = replicas
return obj
