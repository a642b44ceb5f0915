-- Since KubeRay 1.3 the conditions Ready and UpgradeInProgress tell it; before, serviceStatus was the word. Both only
-- count endpoints: whether an application on them could be deployed stands in its own status, for the cluster that
-- serves and for the one that is to follow. observedGeneration is not asked: KubeRay does not keep it up to date.

local hs = {}

if obj.status == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for RayService"
  return hs
end

local function find(kind)
  for _, condition in ipairs(obj.status.conditions or {}) do
    if condition.type == kind then
      return condition
    end
  end
  return nil
end

local function say(condition, otherwise)
  if condition ~= nil and condition.message ~= nil and condition.message ~= "" then
    return condition.message
  end
  return otherwise
end

-- The application in trouble; the first by name, so that the message does not change from one look to the next.
local function trouble(service)
  local worst = nil
  for name, application in pairs((service or {}).applicationStatuses or {}) do
    local failed = application.status == "DEPLOY_FAILED" or application.status == "UNHEALTHY"
    if failed and (worst == nil or name < worst) then
      worst = name
    end
  end
  if worst == nil then
    return nil
  end
  local application = service.applicationStatuses[worst]
  return say(application, "Application " .. worst .. " is " .. application.status)
end

local failure = trouble(obj.status.activeServiceStatus) or trouble(obj.status.pendingServiceStatus)
if failure ~= nil then
  hs.status = "Degraded"
  hs.message = failure
  return hs
end

local ready = find("Ready")
if ready ~= nil and ready.status ~= "True" then
  hs.status = "Progressing"
  if ready.reason == "InitializingTimeout" then
    hs.status = "Degraded"
  end
  hs.message = say(ready, "RayService is not ready")
  return hs
end

local upgrade = find("UpgradeInProgress")
if upgrade ~= nil and upgrade.status == "True" then
  hs.status = "Progressing"
  hs.message = say(upgrade, "RayService is being upgraded")
  return hs
end

local words = {
  Running = "Healthy",
  FailedToGetOrCreateRayCluster = "Degraded",
  FailedToGetServeDeploymentStatus = "Degraded",
  FailedToUpdateServingPodLabel = "Degraded",
  FailedToUpdateService = "Degraded",
}
local word = obj.status.serviceStatus or ""
if ready ~= nil or words[word] == "Healthy" then
  hs.status = "Healthy"
  hs.message = "RayService is running"
elseif words[word] ~= nil then
  hs.status = words[word]
  hs.message = "RayService is " .. word
else
  hs.status = "Progressing"
  hs.message = "Waiting for RayService"
end
return hs
