-- Seldon puts its state (one word) into the message of PipelineReady and the explanation into the reason.

local hs = {}

local found = {}
if obj.status ~= nil then
  for _, condition in ipairs(obj.status.conditions or {}) do
    found[condition.type or ""] = condition
  end
end

local failed = {
  PipelineFailed = true,
  PipelineFailedTerminating = true,
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

local pipeline = found.PipelineReady
if pipeline == nil or pipeline.status == "Unknown" then
  hs.status = "Progressing"
  hs.message = "Waiting for Pipeline"
  return hs
end

if pipeline.status ~= "True" then
  hs.status = "Progressing"
  if failed[pipeline.message or ""] then
    hs.status = "Degraded"
  end
  hs.message = say(pipeline, "Pipeline is not ready")
  return hs
end

-- Older releases have no ModelsReady. A model that is not there has a health of its own.
local models = found.ModelsReady
if models ~= nil and models.status ~= "True" then
  hs.status = "Progressing"
  hs.message = say(models, "Waiting for the models of Pipeline")
  return hs
end

hs.status = "Healthy"
hs.message = "Pipeline is ready"
return hs
