local hs = {}

local generation = nil
if obj.metadata ~= nil then
  generation = obj.metadata.generation
end

local function say(condition, otherwise)
  if condition.message ~= nil and condition.message ~= "" then
    return condition.message
  end
  return condition.reason or otherwise
end

-- The judgement of one set of conditions, or nil where nothing is wrong with it. A refusal outweighs waiting.
local function judge(conditions, prefix)
  local waiting = nil
  for _, condition in ipairs(conditions) do
    local is_demand = condition.type == "Accepted" or condition.type == "ResolvedRefs"
    local is_refused = is_demand and condition.status == "False"
    local is_conflict = condition.status == "True" and condition.type == "Conflicted"
    if generation ~= nil and condition.observedGeneration ~= nil and condition.observedGeneration < generation then
      waiting = waiting or "Waiting for the controller to observe generation " .. generation
    elseif is_refused or is_conflict then
      return {status = "Degraded", message = prefix .. say(condition, condition.type .. " is " .. condition.status)}
    elseif condition.type == "Accepted" and condition.status ~= "True" then
      waiting = waiting or say(condition, "Waiting for Gateway")
    elseif condition.type == "Programmed" and condition.status ~= "True" then
      waiting = waiting or say(condition, "Waiting for Gateway")
    end
  end
  if waiting ~= nil then
    return {status = "Progressing", message = prefix .. waiting}
  end
  return nil
end

local status = obj.status or {}
local is_known = false
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Accepted" or condition.type == "Programmed" then
    is_known = true
  end
end

if not is_known then
  hs.status = "Progressing"
  hs.message = "Waiting for Gateway"
  return hs
end

local verdict = judge(status.conditions, "")
if verdict ~= nil then
  return verdict
end

for _, listener in ipairs(status.listeners or {}) do
  verdict = judge(listener.conditions or {}, "Listener " .. (listener.name or "?") .. ": ")
  if verdict ~= nil then
    return verdict
  end
end

hs.status = "Healthy"
hs.message = "Gateway is programmed"
return hs
