-- An InferenceGraph mirrors the Knative Service or the Deployment of its router in Ready, and has Stopped.
-- Its observedGeneration is that of the Deployment, not its own, so it tells nothing about the graph.

local hs = {}
hs.status = "Progressing"
hs.message = "Waiting for InferenceGraph"

if obj.status == nil or obj.status.conditions == nil then
  return hs
end

-- A stopped graph reports Ready=False as well, so this must be asked first.
for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Stopped" and condition.status == "True" then
    hs.status = "Suspended"
    hs.message = "InferenceGraph is Stopped"
    return hs
  end
end

for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    local message = condition.message
    if message == nil or message == "" then
      message = condition.reason
    end
    if condition.status == "True" then
      hs.status = "Healthy"
      hs.message = "InferenceGraph is ready"
    elseif condition.status == "False" then
      hs.status = "Degraded"
      hs.message = message or "InferenceGraph is not ready"
    else
      hs.message = message or "InferenceGraph is progressing"
    end
    return hs
  end
end

return hs
