-- A Workload asks for room in a queue. It is well as soon as it is admitted: what it admits may run for ever (a model
-- that is served), and a job's own object tells how the job fares.

local hs = {}

local function find(kind)
  if obj.status == nil then
    return nil
  end
  for _, condition in ipairs(obj.status.conditions or {}) do
    if condition.type == kind then
      return condition
    end
  end
  return nil
end

local function holds(condition, status)
  return condition ~= nil and condition.status == status
end

local function say(condition, otherwise)
  if condition ~= nil and condition.message ~= nil and condition.message ~= "" then
    return condition.message
  end
  return otherwise
end

local finished = find("Finished")
if holds(finished, "True") then
  hs.status = "Healthy"
  if finished.reason == "Failed" or finished.reason == "AdmissionChecksRejected" or finished.reason == "OutOfSync" then
    hs.status = "Degraded"
  end
  hs.message = say(finished, "Workload is finished")
  return hs
end

-- Kueue switches a workload off when it gives it up; people do it to hold one back.
local given_up = {
  DeactivatedDueToAdmissionCheck = true,
  DeactivatedDueToMaximumExecutionTimeExceeded = true,
  DeactivatedDueToRequeuingLimitExceeded = true,
}
local evicted = find("Evicted")
if obj.spec ~= nil and obj.spec.active == false then
  hs.status = "Suspended"
  hs.message = "Workload is not active"
  if holds(evicted, "True") then
    hs.message = say(evicted, hs.message)
    if given_up[evicted.reason or ""] then
      hs.status = "Degraded"
    end
  end
  return hs
end

local admitted = find("Admitted")
if holds(admitted, "True") then
  local pods = find("PodsReady")
  if holds(pods, "False") then
    hs.status = "Progressing"
    hs.message = say(pods, "Waiting for the pods of Workload")
  else
    hs.status = "Healthy"
    hs.message = say(admitted, "Workload is admitted")
  end
  return hs
end

hs.status = "Progressing"
local reserved = find("QuotaReserved")
if holds(reserved, "True") then
  hs.message = "Workload has its quota and waits for admission checks"
elseif holds(reserved, "False") then
  hs.message = say(reserved, "Workload waits for quota")
elseif holds(evicted, "True") then
  hs.message = say(evicted, "Workload is evicted")
else
  hs.message = "Waiting for Workload"
end
return hs
