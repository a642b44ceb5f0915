local phase = nil
if obj.status ~= nil then
  phase = obj.status.phase
end
local actions = {}
-- One that is still running is not run a second time.
actions["re-run"] = { disabled = phase ~= "Succeeded" and phase ~= "Failed" }
return actions
