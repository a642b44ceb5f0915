-- argo: a SparkApplication is Healthy once it runs with all its executors, since many of them never end (streaming).

local hs = {}

local meaning = {
  SUBMITTED = {"Progressing", "SparkApplication is submitted"},
  RUNNING = {"Progressing", "SparkApplication waits for its executors"},
  SUCCEEDING = {"Progressing", "SparkApplication has succeeded and cleans up"},
  PENDING_RERUN = {"Progressing", "SparkApplication waits to run again"},
  RESUMING = {"Progressing", "SparkApplication resumes"},
  UNKNOWN = {"Progressing", "The driver or an executor of SparkApplication cannot be seen"},
  INVALIDATING = {"Missing", "SparkApplication is being replaced after a change"},
  SUSPENDING = {"Suspended", "SparkApplication is being suspended"},
  SUSPENDED = {"Suspended", "SparkApplication is suspended"},
  COMPLETED = {"Healthy", "SparkApplication has completed"},
  FAILING = {"Degraded", "SparkApplication is failing"},
  FAILED = {"Degraded", "SparkApplication has failed"},
  SUBMISSION_FAILED = {"Degraded", "SparkApplication could not be submitted"},
}

-- How many executors must run: with dynamic allocation the least that are allowed, else what was asked for.
local function wanted()
  local spec = obj.spec or {}
  local dynamic = spec.dynamicAllocation
  if dynamic ~= nil and dynamic.enabled == true then
    return dynamic.minExecutors or 0
  end
  if spec.executor ~= nil and spec.executor.instances ~= nil then
    return spec.executor.instances
  end
  return 1
end

local function running()
  local count = 0
  for _, state in pairs(obj.status.executorState or {}) do
    if state == "RUNNING" then
      count = count + 1
    end
  end
  return count
end

local application = nil
if obj.status ~= nil then
  application = obj.status.applicationState
end
if application == nil or meaning[application.state or ""] == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for SparkApplication"
  return hs
end

hs.status = meaning[application.state][1]
hs.message = meaning[application.state][2]
if application.state == "RUNNING" and running() >= wanted() then
  hs.status = "Healthy"
  hs.message = "SparkApplication is running"
elseif hs.status == "Degraded" and application.errorMessage ~= nil and application.errorMessage ~= "" then
  hs.message = application.errorMessage
end
return hs
