-- A Job now, from the CronJob's template, as `kubectl create job --from=cronjob/NAME` makes it.
local os = require("os")

-- Lua cannot tell {} from [], and a list where an object belongs is refused: what is empty is left out.
local function without_empty(value)
  for name, part in pairs(value) do
    if type(part) == "table" then
      without_empty(part)
      if type(name) == "string" and next(part) == nil then
        value[name] = nil
      end
    end
  end
  return value
end

local template = obj.spec.jobTemplate
local metadata = template.metadata or {}
local annotations = metadata.annotations or {}
annotations["cronjob.kubernetes.io/instantiate"] = "manual"

local job = {}
job.apiVersion = "batch/v1"
job.kind = "Job"
job.metadata = {
  -- A CronJob's name has at most 52 letters and a Job's 63: room for a dash and the seconds since 1970.
  name = obj.metadata.name .. "-" .. tostring(os.time()),
  namespace = obj.metadata.namespace,
  labels = metadata.labels,
  annotations = annotations,
}
if obj.metadata.uid ~= nil then
  -- So that the Job goes when the CronJob does, and counts in its history.
  job.metadata.ownerReferences = {
    { apiVersion = obj.apiVersion, kind = obj.kind, name = obj.metadata.name, uid = obj.metadata.uid, controller = true },
  }
end
job.spec = template.spec

return { { operation = "create", resource = without_empty(job) } }
