-- Aborted has two causes: somebody suspended the job (it can be resumed), or a policy of its own gave it up because of
-- a pod that failed. Only the number of failed pods tells them apart.

local hs = {}

local meaning = {
  Pending = "Progressing",
  Running = "Progressing",
  Restarting = "Progressing",
  Completing = "Progressing",
  Terminating = "Progressing",
  Aborting = "Progressing",
  Aborted = "Suspended",
  Completed = "Healthy",
  Terminated = "Degraded",
  Failed = "Degraded",
}

if obj.status == nil or obj.status.state == nil or meaning[obj.status.state.phase or ""] == nil then
  hs.status = "Progressing"
  hs.message = "Waiting for Job"
  return hs
end

local state = obj.status.state
hs.status = meaning[state.phase]
if state.phase == "Aborted" and (obj.status.failed or 0) > 0 then
  hs.status = "Degraded"
end

hs.message = "Job is " .. state.phase
if state.message ~= nil and state.message ~= "" then
  hs.message = state.message
elseif state.reason ~= nil and state.reason ~= "" then
  hs.message = state.reason
end
return hs
