-- The controller writes one condition, Synced: whether the secret could be unsealed and written.

local hs = {}
hs.status = "Progressing"
hs.message = "Waiting for SealedSecret to be unsealed"

if obj.status == nil then
  return hs
end

local observed = obj.status.observedGeneration
local generation = obj.metadata ~= nil and obj.metadata.generation or nil
if observed ~= nil and generation ~= nil and observed < generation then
  hs.message = "Waiting for the controller to observe generation " .. generation
  return hs
end

for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Synced" then
    if condition.status == "True" then
      hs.status = "Healthy"
      hs.message = "SealedSecret is synced"
    elseif condition.status == "False" then
      hs.status = "Degraded"
      hs.message = "SealedSecret is not synced"
      if condition.message ~= nil and condition.message ~= "" then
        hs.message = condition.message
      end
    end
    return hs
  end
end

return hs
