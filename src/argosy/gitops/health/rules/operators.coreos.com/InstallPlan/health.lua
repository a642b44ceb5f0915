local hs = {}

if obj.status == nil or obj.status.phase == nil or obj.status.phase == "" then
  hs.status = "Progressing"
  hs.message = "Waiting for InstallPlan"
  return hs
end

local phase = obj.status.phase

if phase == "Complete" then
  hs.status = "Healthy"
  hs.message = "InstallPlan is complete"
  return hs
end

-- The reason of a failure is in a condition (Resolved or Installed is False), or in the message beside the phase.
if phase == "Failed" then
  hs.status = "Degraded"
  hs.message = "InstallPlan failed"
  for _, condition in ipairs(obj.status.conditions or {}) do
    if condition.status == "False" and condition.message ~= nil and condition.message ~= "" then
      hs.message = condition.message
      return hs
    end
  end
  if obj.status.message ~= nil and obj.status.message ~= "" then
    hs.message = obj.status.message
  end
  return hs
end

-- The phase lags behind an approval that was just given.
local is_approved = obj.spec ~= nil and obj.spec.approved == true
if phase == "RequiresApproval" and not is_approved then
  hs.status = "Suspended"
  hs.message = "InstallPlan waits for approval"
  return hs
end

hs.status = "Progressing"
hs.message = "InstallPlan is " .. phase
return hs
