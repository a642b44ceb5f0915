local paused = obj.spec ~= nil and obj.spec.paused == true
local actions = {}
-- While it is paused, a new Pod template is not rolled out, so a restart would seem to do nothing.
actions["restart"] = { disabled = paused }
actions["pause"] = { disabled = paused }
actions["resume"] = { disabled = not paused }
actions["scale"] = { params = { { name = "replicas" } } }
return actions
