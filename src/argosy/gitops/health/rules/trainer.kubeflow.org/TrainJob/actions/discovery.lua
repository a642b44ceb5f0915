-- Where Kueue admits it, Kueue alone decides this field, and would undo what anybody else writes.
local labels = {}
if obj.metadata ~= nil and obj.metadata.labels ~= nil then
  labels = obj.metadata.labels
end
local queued = labels["kueue.x-k8s.io/queue-name"] ~= nil
local suspended = obj.spec ~= nil and obj.spec.suspend == true
local finished = false
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if (condition.type == "Complete" or condition.type == "Failed") and condition.status == "True" then
      finished = true
    end
  end
end
local fixed = queued or finished

local actions = {}
actions["suspend"] = { disabled = fixed or suspended }
actions["resume"] = { disabled = fixed or not suspended }
return actions
