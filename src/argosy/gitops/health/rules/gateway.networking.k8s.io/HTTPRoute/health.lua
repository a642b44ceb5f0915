local hs = {}

local generation = nil
if obj.metadata ~= nil then
  generation = obj.metadata.generation
end

-- A parent that has not caught up is left out rather than waited for: one that no longer wants the route may never
-- write again. Controllers that write no generation are taken at their word.
local function is_current(conditions)
  if generation == nil then
    return true
  end
  local is_stale = false
  for _, condition in ipairs(conditions) do
    if condition.observedGeneration ~= nil then
      if condition.observedGeneration >= generation then
        return true
      end
      is_stale = true
    end
  end
  return not is_stale
end

local function say(condition)
  if condition.message ~= nil and condition.message ~= "" then
    return condition.message
  end
  return condition.reason or condition.type .. " is " .. condition.status
end

local refusals = {Accepted = true, ResolvedRefs = true, Reconciled = true}

local status = obj.status or {}
local is_served = false
local waiting = nil
for _, parent in ipairs(status.parents or {}) do
  local conditions = parent.conditions or {}
  if #conditions > 0 and is_current(conditions) then
    is_served = true
    local name = "?"
    if parent.parentRef ~= nil and parent.parentRef.name ~= nil then
      name = parent.parentRef.name
    end
    for _, condition in ipairs(conditions) do
      if condition.status == "False" and refusals[condition.type] then
        hs.status = "Degraded"
        hs.message = "Parent " .. name .. ": " .. say(condition)
        return hs
      end
      if condition.type == "Programmed" and condition.status ~= "True" then
        waiting = waiting or "Parent " .. name .. ": " .. say(condition)
      end
    end
  end
end

if waiting ~= nil then
  hs.status = "Progressing"
  hs.message = waiting
  return hs
end

if not is_served then
  hs.status = "Progressing"
  hs.message = "Waiting for HTTPRoute"
  return hs
end

hs.status = "Healthy"
hs.message = "HTTPRoute is accepted"
return hs
