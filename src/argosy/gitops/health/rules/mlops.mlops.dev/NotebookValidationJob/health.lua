-- Profile basic: the phase decides.

local hs = {}
hs.status = "Progressing"

if obj.status == nil or obj.status.phase == nil then
  hs.message = "Initializing notebook validation"
  return hs
end

-- What an earlier specification came to says nothing about the present one. Older controllers do not report it.
local observed = obj.status.observedGeneration
local generation = obj.metadata ~= nil and obj.metadata.generation or nil
if observed ~= nil and generation ~= nil and observed < generation then
  hs.message = "Waiting for the controller to observe generation " .. generation
  return hs
end

local phase = obj.status.phase

if phase == "Succeeded" then
  hs.status = "Healthy"
  hs.message = "Notebook validation succeeded"
  if obj.status.completionTime ~= nil then
    hs.message = hs.message .. " at " .. obj.status.completionTime
  end
elseif phase == "Failed" then
  hs.status = "Degraded"
  hs.message = "Notebook validation failed"
  if obj.status.message ~= nil and obj.status.message ~= "" then
    hs.message = obj.status.message
  end
  if obj.status.retryCount ~= nil then
    local limit = 3
    if obj.spec ~= nil and obj.spec.retryPolicy ~= nil then
      limit = obj.spec.retryPolicy.maxRetries or limit
    end
    hs.message = hs.message .. " (retry " .. obj.status.retryCount .. "/" .. limit .. ")"
  end
elseif phase == "ValidationRunning" then
  hs.message = "Validating notebook"
  if obj.status.validationPodName ~= nil and obj.status.validationPodName ~= "" then
    hs.message = hs.message .. " (pod: " .. obj.status.validationPodName .. ")"
  end
elseif phase == "Building" then
  hs.message = "Building validation environment"
elseif phase == "BuildComplete" then
  hs.message = "Build complete, preparing validation"
elseif phase == "Initializing" or phase == "Pending" or phase == "Running" then
  hs.message = "Initializing notebook validation"
else
  hs.message = "Phase: " .. phase
end

return hs
