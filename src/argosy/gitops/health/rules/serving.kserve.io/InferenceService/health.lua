-- Profile argocd: judges as Argo CD's own bundled check does.
-- argo: the message lists whatever is not as it should be, each with its place in the list of conditions; place 0
-- is the model's transition, and a list that begins with a condition still begins with the separator.

local hs = {}

if obj.status == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for InferenceService"
  return hs
end

local conditions = obj.status.conditions or {}

-- A stopped service reports Ready=False as well, so this must be asked first.
for _, condition in ipairs(conditions) do
  if condition.type == "Stopped" and condition.status == "True" then
    hs.status = "Suspended"
    hs.message = "InferenceService is Stopped"
    return hs
  end
end

local transition = "UpToDate"
if obj.status.modelStatus ~= nil then
  transition = obj.status.modelStatus.transitionStatus or transition
end

local findings = ""
if transition ~= "UpToDate" then
  findings = "0: transitionStatus | " .. transition
end

local judged = 0
for place, condition in ipairs(conditions) do
  if condition.type ~= "Stopped" then
    judged = judged + 1
    if condition.status ~= "True" then
      findings = findings .. " | " .. place .. ": " .. tostring(condition.type) .. " | " .. tostring(condition.status)
      if condition.reason ~= nil and condition.reason ~= "" then
        findings = findings .. " | " .. condition.reason
      end
      if condition.message ~= nil and condition.message ~= "" then
        findings = findings .. " | " .. condition.message
      end
    end
  end
end

if transition ~= "UpToDate" and transition ~= "InProgress" then
  hs.status = "Degraded"
  hs.message = findings
elseif findings ~= "" then
  hs.status = "Progressing"
  hs.message = findings
elseif judged == 0 then
  hs.status = "Progressing"
  hs.message = "Waiting for InferenceService"
else
  hs.status = "Healthy"
  hs.message = "InferenceService is healthy."
end

return hs
