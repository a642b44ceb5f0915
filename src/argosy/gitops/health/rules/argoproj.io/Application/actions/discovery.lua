local policy = obj.spec ~= nil and obj.spec.syncPolicy or nil
local automated = policy ~= nil and policy.automated or nil
local enabled = automated ~= nil and automated.enabled ~= false
local actions = {}
actions["toggle-auto-sync"] = { displayName = enabled and "Disable Auto-Sync" or "Enable Auto-Sync" }
return actions
