-- A Notebook mirrors the state of its container. People (and the culler) stop one with an annotation; OpenShift AI sets
-- the same annotation with this value for a moment, to hold a new one back until it has prepared everything.

local hs = {}
local LOCK = "odh-notebook-controller-lock"

local status = obj.status or {}
local ready = status.readyReplicas or 0
local state = status.containerState or {}

local stopped = nil
if obj.metadata ~= nil and obj.metadata.annotations ~= nil then
  stopped = obj.metadata.annotations["kubeflow-resource-stopped"]
end

if stopped ~= nil and stopped ~= LOCK then
  hs.status = "Suspended"
  hs.message = "Notebook is stopped"
  if ready > 0 then
    hs.status = "Progressing"
    hs.message = "Notebook is stopping"
  end
  return hs
end

if ready > 0 then
  hs.status = "Healthy"
  hs.message = "Notebook is running"
  return hs
end

local function say(cause, otherwise)
  if cause.message ~= nil and cause.message ~= "" then
    return cause.message
  end
  if cause.reason ~= nil and cause.reason ~= "" then
    return cause.reason
  end
  return otherwise
end

-- Reasons to wait that do not pass by themselves.
local hopeless = {
  CrashLoopBackOff = true,
  CreateContainerConfigError = true,
  CreateContainerError = true,
  ErrImagePull = true,
  ImageInspectError = true,
  ImagePullBackOff = true,
  InvalidImageName = true,
  RunContainerError = true,
}

if state.waiting ~= nil then
  hs.status = "Progressing"
  if hopeless[state.waiting.reason or ""] then
    hs.status = "Degraded"
  end
  hs.message = say(state.waiting, "Notebook is waiting")
  return hs
end

if state.terminated ~= nil and (state.terminated.exitCode or 0) ~= 0 then
  hs.status = "Degraded"
  hs.message = say(state.terminated, "Notebook has ended with exit code " .. state.terminated.exitCode)
  return hs
end

hs.status = "Progressing"
hs.message = "Waiting for Notebook"
if state.running ~= nil then
  hs.message = "Notebook is starting"
  return hs
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "PodScheduled" and condition.status == "False" then
    hs.message = say(condition, hs.message)
  end
end
return hs
