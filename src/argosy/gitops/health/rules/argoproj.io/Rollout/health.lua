local hs = {}

local metadata = obj.metadata or {}
local spec = obj.spec or {}
local status = obj.status

if status == nil or status.observedGeneration == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for Rollout"
  return hs
end

-- Generations are texts here. A text that is no number, or a number from the future, is the hash that controllers
-- before 1.0 wrote in its place: nothing can be told from it.
local function is_behind(observed, generation)
  observed = tonumber(observed)
  generation = tonumber(generation)
  return observed ~= nil and generation ~= nil and observed < generation
end

if is_behind(status.observedGeneration, metadata.generation) then
  hs.status = "Progressing"
  hs.message = "Waiting for the controller to observe generation " .. metadata.generation
  return hs
end

-- A Rollout that borrows the pod template of a Deployment also follows that Deployment's generation.
if spec.workloadRef ~= nil and metadata.annotations ~= nil then
  local generation = metadata.annotations["rollout.argoproj.io/workload-generation"]
  if is_behind(status.workloadObservedGeneration, generation) then
    hs.status = "Progressing"
    hs.message = "Waiting for the controller to observe generation " .. generation .. " of the referenced workload"
    return hs
  end
end

-- Since 1.0 the controller draws the conclusion itself.
local phases = {Healthy = "Healthy", Progressing = "Progressing", Degraded = "Degraded", Paused = "Suspended"}
if status.phase ~= nil and phases[status.phase] ~= nil then
  hs.status = phases[status.phase]
  hs.message = "Rollout is " .. status.phase
  if status.message ~= nil and status.message ~= "" then
    hs.message = status.message
  end
  return hs
end

for _, condition in ipairs(status.conditions or {}) do
  local is_stopped = condition.type == "Progressing"
    and (condition.reason == "RolloutAborted" or condition.reason == "ProgressDeadlineExceeded")
  if condition.type == "InvalidSpec" or is_stopped then
    hs.status = "Degraded"
    hs.message = condition.message or condition.reason or "Rollout failed"
    return hs
  end
end

if spec.paused == true or (status.pauseConditions ~= nil and #status.pauseConditions > 0) then
  hs.status = "Suspended"
  hs.message = "Rollout is paused"
  return hs
end

local function progressing(message)
  return {status = "Progressing", message = message}
end

local current = status.currentPodHash
if current == nil then
  return progressing("Waiting for Rollout")
end

local updated = status.updatedReplicas or 0
if updated < (spec.replicas or 1) then
  return progressing("Waiting for more replicas to be updated")
end
if (status.availableReplicas or 0) < updated then
  return progressing("Waiting for updated replicas to become available")
end

local strategy = spec.strategy or {}
local stable = status.stableRS
if stable == nil and status.canary ~= nil then
  stable = status.canary.stableRS
end

if strategy.blueGreen ~= nil then
  if status.blueGreen == nil or status.blueGreen.activeSelector ~= current then
    return progressing("Waiting for the active Service to switch to the new version")
  end
  if stable ~= nil and stable ~= "" and stable ~= current then
    return progressing("Waiting for the analysis of the new version")
  end
elseif strategy.canary ~= nil then
  if (status.replicas or 0) > updated then
    return progressing("Waiting for old replicas to end")
  end
  if stable ~= current then
    return progressing("Waiting for the remaining steps")
  end
end

hs.status = "Healthy"
hs.message = "Rollout is healthy"
return hs
