-- Where Kueue admits it, Kueue alone decides this field, and would undo what anybody else writes.
local labels = {}
if obj.metadata ~= nil and obj.metadata.labels ~= nil then
  labels = obj.metadata.labels
end
local queued = labels["kueue.x-k8s.io/queue-name"] ~= nil
local suspended = obj.spec ~= nil and obj.spec.suspend == true
local state = nil
if obj.status ~= nil then
  state = obj.status.jobDeploymentStatus
end
local fixed = queued or state == "Complete" or state == "Failed"
-- KubeRay refuses to suspend a job whose cluster it may not take down.
local pinned = obj.spec == nil or obj.spec.shutdownAfterJobFinishes ~= true or obj.spec.clusterSelector ~= nil

local actions = {}
actions["suspend"] = { disabled = fixed or suspended or pinned }
actions["resume"] = { disabled = fixed or not suspended }
return actions
