-- Profile strict: the first Ready condition decides, and Ready=False is a failure.
-- Other conditions, Stopped=False among them, say nothing about health.

local hs = {}
hs.status = "Progressing"
hs.message = "Waiting for InferenceService"

if obj.status == nil or obj.status.conditions == nil then
  return hs
end

-- Whoever stops a service on purpose gets Ready=False too; that is no failure, so this must be asked first.
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Stopped" and condition.status == "True" then
    hs.status = "Suspended"
    hs.message = "InferenceService is Stopped"
    return hs
  end
end

for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    local message = condition.message
    if message == "" then
      message = nil
    end
    if condition.status == "True" then
      hs.status = "Healthy"
      hs.message = "InferenceService is ready"
    elseif condition.status == "False" then
      hs.status = "Degraded"
      hs.message = message or "InferenceService is not ready"
    else
      hs.status = "Progressing"
      hs.message = message or "InferenceService is progressing"
    end
    return hs
  end
end

return hs
