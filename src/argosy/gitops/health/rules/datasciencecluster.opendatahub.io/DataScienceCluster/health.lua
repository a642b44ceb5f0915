local hs = {}

if obj.status == nil or obj.status.phase == nil or obj.status.phase == "" then
  hs.status = "Progressing"
  hs.message = "Waiting for DataScienceCluster"
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

if obj.status.phase == "Ready" then
  hs.status = "Healthy"
  hs.message = "DataScienceCluster is ready"
  return hs
end

if obj.status.phase == "Error" then
  hs.status = "Degraded"
  hs.message = "DataScienceCluster failed"
  if obj.status.errorMessage ~= nil and obj.status.errorMessage ~= "" then
    hs.message = obj.status.errorMessage
  end
  return hs
end

-- "Not Ready" also covers a component that starts slowly, so it is no failure; the conditions know which one it is.
local messages = {}
for _, condition in ipairs(obj.status.conditions or {}) do
  local is_telling = condition.type ~= nil and condition.message ~= nil and condition.message ~= ""
  if is_telling and condition.status ~= "True" then
    messages[condition.type] = condition.message
  end
end

hs.status = "Progressing"
hs.message = messages.ProvisioningSucceeded or messages.ComponentsReady or messages.Ready
  or "DataScienceCluster is " .. obj.status.phase
return hs
