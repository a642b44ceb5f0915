-- Where Kueue admits it, Kueue alone decides this field, and would undo what anybody else writes.
local labels = {}
if obj.metadata ~= nil and obj.metadata.labels ~= nil then
  labels = obj.metadata.labels
end
local queued = labels["kueue.x-k8s.io/queue-name"] ~= nil
local suspended = obj.spec ~= nil and obj.spec.suspend == true

local actions = {}
actions["suspend"] = { disabled = queued or suspended }
actions["resume"] = { disabled = queued or not suspended }
return actions
