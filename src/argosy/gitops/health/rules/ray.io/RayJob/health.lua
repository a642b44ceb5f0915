-- jobDeploymentStatus tells how far KubeRay is, jobStatus what Ray says of the job. Complete alone does not mean well
-- done: the job may have been stopped, and older releases say Complete of a job that failed.

local hs = {}

local status = obj.status or {}
local phase = status.jobDeploymentStatus or ""

local function say(otherwise)
  if status.message ~= nil and status.message ~= "" then
    return status.message
  end
  if status.reason ~= nil and status.reason ~= "" then
    return status.reason
  end
  return otherwise
end

if phase == "Failed" or phase == "ValidationFailed" then
  hs.status = "Degraded"
  hs.message = say("RayJob is " .. phase)
  return hs
end

if phase == "Complete" then
  if status.jobStatus == "SUCCEEDED" then
    hs.status = "Healthy"
    hs.message = say("RayJob is complete")
  else
    hs.status = "Degraded"
    hs.message = say("RayJob is complete, but its job is " .. (status.jobStatus or "not known"))
  end
  return hs
end

-- Before KubeRay has said anything, the wish is all there is.
if phase == "Suspended" or phase == "Suspending" or (phase == "" and obj.spec ~= nil and obj.spec.suspend == true) then
  hs.status = "Suspended"
  hs.message = "RayJob is suspended"
  return hs
end

if phase == "Scheduled" then
  hs.status = "Healthy"
  hs.message = "RayJob waits for its next run"
  return hs
end

hs.status = "Progressing"
hs.message = "Waiting for RayJob"
if phase ~= "" then
  hs.message = say("RayJob is " .. phase)
end
return hs
