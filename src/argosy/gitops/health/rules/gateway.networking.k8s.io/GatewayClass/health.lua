local hs = {}

local accepted = nil
if obj.status ~= nil then
  for _, condition in ipairs(obj.status.conditions or {}) do
    if condition.type == "Accepted" then
      accepted = condition
    end
  end
end

if accepted == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for GatewayClass"
  return hs
end

local generation = nil
if obj.metadata ~= nil then
  generation = obj.metadata.generation
end
if generation ~= nil and accepted.observedGeneration ~= nil and accepted.observedGeneration < generation then
  hs.status = "Progressing"
  hs.message = "Waiting for the controller to observe generation " .. generation
  return hs
end

if accepted.status == "True" then
  hs.status = "Healthy"
  hs.message = accepted.message or "GatewayClass is accepted"
  return hs
end

-- The API server itself fills in Unknown, with the text "Waiting for controller".
hs.status = "Progressing"
if accepted.status == "False" then
  hs.status = "Degraded"
end
hs.message = accepted.message or accepted.reason or "GatewayClass is not accepted"
return hs
