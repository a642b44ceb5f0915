local annotations = {}
if obj.metadata ~= nil and obj.metadata.annotations ~= nil then
  annotations = obj.metadata.annotations
end
-- KServe takes the word in any case.
local stop = annotations["serving.kserve.io/stop"]
local stopped = stop == "true" or stop == "True" or stop == "TRUE"
-- With ModelMesh the Pods belong to the runtime, which many models share.
local shared = annotations["serving.kserve.io/deploymentMode"] == "ModelMesh"

local actions = {}
actions["restart"] = { disabled = stopped or shared }
actions["stop"] = { disabled = stopped or shared }
actions["start"] = { disabled = not stopped }
return actions
