local suspended = obj.spec ~= nil and obj.spec.suspend == true
local actions = {}
actions["create-job"] = { displayName = "Run now" }
actions["suspend"] = { disabled = suspended }
actions["resume"] = { disabled = not suspended }
return actions
