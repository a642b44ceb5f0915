local hs = {}

local spec = obj.spec or {}

-- As a paused Deployment: nothing rolls out until someone resumes it.
if spec.paused == true then
  hs.status = "Suspended"
  hs.message = "DeploymentConfig is paused"
  return hs
end

if obj.status == nil or obj.status.conditions == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for DeploymentConfig"
  return hs
end

local generation = nil
if obj.metadata ~= nil then
  generation = obj.metadata.generation
end
if generation ~= nil and obj.status.observedGeneration ~= nil and obj.status.observedGeneration < generation then
  hs.status = "Progressing"
  hs.message = "Waiting for the controller to observe generation " .. generation
  return hs
end

local available = {}
local progressing = {}
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Available" then
    available = condition
  elseif condition.type == "Progressing" then
    progressing = condition
  elseif condition.type == "ReplicaFailure" and condition.status == "True" then
    hs.status = "Degraded"
    hs.message = condition.message or "DeploymentConfig cannot create its pods"
    return hs
  end
end

-- argo: differs: Argo CD goes on to say Progressing while the version before still serves, and for ever.
if progressing.status == "False" then
  hs.status = "Degraded"
  hs.message = progressing.message or progressing.reason or "The rollout failed"
  return hs
end

local replicas = obj.status.replicas or 0
if progressing.status == "True" and progressing.reason == "NewReplicationControllerAvailable" then
  -- No pod asked for is no pod missing: scaled to zero, or idled.
  if available.status == "True" or replicas == 0 then
    hs.status = "Healthy"
    hs.message = progressing.message or "DeploymentConfig is rolled out"
    return hs
  end
  hs.status = "Progressing"
  hs.message = available.message or "Waiting for pods to become available"
  return hs
end

-- Pods exist, too few of them work, and no rollout is under way that could mend it.
if available.status == "False" and progressing.status ~= "True" and replicas > 0 then
  hs.status = "Degraded"
  hs.message = available.message or "DeploymentConfig is not available"
  return hs
end

-- argo: differs: a first rollout has no available pod yet; Argo CD says Healthy before its first pod, then Degraded.
hs.status = "Progressing"
hs.message = progressing.message or "Waiting for the rollout to finish"
return hs
