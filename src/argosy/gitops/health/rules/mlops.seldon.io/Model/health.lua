-- Seldon puts its state (one word) into the message of ModelReady and the explanation into the reason.

local hs = {}

local found = {}
if obj.status ~= nil then
  for _, condition in ipairs(obj.status.conditions or {}) do
    found[condition.type or ""] = condition
  end
end

local failed = {
  ModelFailed = true,
  ModelTerminateFailed = true,
  ScheduleFailed = true,
}

local function say(condition, otherwise)
  if condition.reason ~= nil and condition.reason ~= "" then
    return condition.reason
  end
  if condition.message ~= nil and condition.message ~= "" then
    return condition.message
  end
  return otherwise
end

local model = found.ModelReady
if model ~= nil and model.status == "True" then
  hs.status = "Healthy"
  hs.message = "Model is available"
  return hs
end

if model == nil or model.status ~= "False" then
  hs.status = "Progressing"
  hs.message = "Waiting for Model"
  return hs
end

hs.status = "Progressing"
if failed[model.message or ""] then
  hs.status = "Degraded"
elseif model.message == "ModelScaledDown" then
  hs.status = "Suspended"
end
hs.message = say(model, "Model is not ready")
return hs
