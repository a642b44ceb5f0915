-- A TrainedModel is loaded into an InferenceService that runs. Until that service takes it, and whenever the service
-- is not ready, it reports Ready=False: it waits, it has not failed.

local hs = {}
hs.status = "Progressing"
hs.message = "Waiting for TrainedModel"

if obj.status == nil or obj.status.conditions == nil then
  return hs
end

for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" and condition.status == "True" then
    hs.status = "Healthy"
    hs.message = "TrainedModel is ready"
    return hs
  end
end

return hs
