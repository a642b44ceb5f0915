-- Profile lenient: always Healthy, so that a service whose model is trained later does not hold up a sync.
-- Only the message tells how far the service is.

local hs = {}
hs.status = "Healthy"

if obj.status == nil then
  hs.message = "InferenceService created (model pending)"
  return hs
end

if obj.status.conditions == nil or next(obj.status.conditions) == nil then
  hs.message = "InferenceService status unknown (model pending)"
  return hs
end

hs.message = "InferenceService status progressing"
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    if condition.status == "True" then
      hs.message = "InferenceService is ready"
    elseif condition.status == "False" then
      local reason = "pending"
      if condition.message ~= nil and condition.message ~= "" then
        reason = condition.message
      end
      hs.message = "InferenceService waiting for model: " .. reason
    end
    return hs
  end
end

return hs
