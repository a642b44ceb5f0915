-- Profile wait-for-consumer: a claim whose StorageClass waits for the first Pod is well while it is Pending. Judged
-- otherwise, a wave that holds the claim would wait for a Pod of a later wave for ever.
--
-- The modes of the StorageClasses come in as facts:
--   {storageClasses = {gp3 = "WaitForFirstConsumer"}, defaultStorageClass = "gp3"}
-- Argo CD gives no facts. A mode that is not known counts as WaitForFirstConsumer.

local hs = {}

if obj.status == nil or obj.status.phase == nil then
  hs.status = "Progressing"
  hs.message = "PVC status unknown"
  return hs
end

local phase = obj.status.phase

if phase == "Bound" then
  hs.status = "Healthy"
  hs.message = "PVC is bound"
  return hs
end

if phase == "Lost" then
  hs.status = "Degraded"
  hs.message = "PVC is lost"
  return hs
end

if phase ~= "Pending" then
  hs.status = "Progressing"
  hs.message = "PVC status: " .. phase
  return hs
end

local class = nil
if obj.spec ~= nil then
  class = obj.spec.storageClassName
end

if facts ~= nil and facts.storageClasses ~= nil then
  if class == nil then
    class = facts.defaultStorageClass
  end
  if class == "" then
    -- The empty name turns StorageClasses off: the claim waits for a volume that somebody makes, not for a Pod.
    hs.status = "Progressing"
    hs.message = "PVC is pending (no StorageClass, waiting for a volume)"
    return hs
  end
  if class ~= nil and facts.storageClasses[class] == "Immediate" then
    hs.status = "Progressing"
    hs.message = "PVC is pending (StorageClass " .. class .. " binds immediately, waiting for a volume)"
    return hs
  end
end

hs.status = "Healthy"
hs.message = "PVC is pending (likely WaitForFirstConsumer)"
return hs
