local hs = {}

if obj.status == nil or obj.status.conditions == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for Subscription"
  return hs
end

local installed = obj.status.installedCSV

local function say(condition)
  local message = "Subscription: " .. condition.type
  if condition.reason ~= nil and condition.reason ~= "" then
    message = message .. " (" .. condition.reason .. ")"
  end
  if condition.message ~= nil and condition.message ~= "" then
    message = message .. ": " .. condition.message
  end
  return message
end

local faults = {
  BundleUnpackFailed = true,
  CatalogSourcesUnhealthy = true,
  InstallPlanFailed = true,
  InstallPlanMissing = true,
  ResolutionFailed = true,
}

local pending = nil
for _, condition in ipairs(obj.status.conditions) do
  if condition.status == "True" then
    -- Someone tidied away a finished InstallPlan: what it installed is still there.
    local is_tidied = condition.type == "InstallPlanMissing" and condition.reason == "ReferencedInstallPlanNotFound"
    if faults[condition.type] and not is_tidied then
      hs.status = "Degraded"
      hs.message = say(condition)
      return hs
    end
    if condition.type == "InstallPlanPending" or condition.type == "BundleUnpacking" then
      pending = pending or condition
    end
  end
end

if pending ~= nil then
  -- An upgrade on offer takes nothing from the version that runs.
  if pending.reason == "RequiresApproval" and installed ~= nil then
    hs.status = "Healthy"
    hs.message = "Installed: " .. installed .. "; an upgrade waits for approval"
    return hs
  end
  hs.status = "Progressing"
  hs.message = say(pending)
  return hs
end

-- The first status only says that the catalogs are well; without this a wave would go on before the operator exists.
if installed == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for the first version to be installed"
  return hs
end

hs.status = "Healthy"
hs.message = "Installed: " .. installed
return hs
