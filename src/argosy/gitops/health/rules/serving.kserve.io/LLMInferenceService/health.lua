-- Ready sums up WorkloadsReady and RouterReady, and carries the reason of the part that is not ready.
-- It is False from the first moment on, also while a part merely starts: only the reason tells a start from a failure.

local hs = {}
hs.status = "Progressing"
hs.message = "Waiting for LLMInferenceService"

local starting = {
  -- of a Deployment, a LeaderWorkerSet, an autoscaler
  Progressing = true,
  MinimumReplicasUnavailable = true,
  GroupsProgressing = true,
  AllGroupsReady = true,
  HPAProgressing = true,
  ScaledObjectProgressing = true,
  -- of the Gateway API
  WaitingForGateway = true,
  GatewaysNotReady = true,
  HTTPRoutesNotReady = true,
  InferencePoolNotReady = true,
}

if obj.status == nil or obj.status.conditions == nil then
  return hs
end

local observed = obj.status.observedGeneration
local generation = obj.metadata ~= nil and obj.metadata.generation or nil
if observed ~= nil and generation ~= nil and observed < generation then
  hs.message = "Waiting for the controller to observe generation " .. generation
  return hs
end

for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    local reason = condition.reason or ""
    local message = condition.message
    if message == nil or message == "" then
      message = condition.reason
    end
    if condition.status == "True" then
      hs.status = "Healthy"
      hs.message = "LLMInferenceService is ready"
    elseif condition.status == "False" and reason == "Stopped" then
      hs.status = "Suspended"
      hs.message = "LLMInferenceService is Stopped"
    elseif condition.status == "False" and not starting[reason] then
      hs.status = "Degraded"
      hs.message = message or "LLMInferenceService is not ready"
    else
      hs.message = message or "LLMInferenceService is progressing"
    end
    return hs
  end
end

return hs
