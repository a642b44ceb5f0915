-- argo: an Application has no health of its own unless this is chosen: a parent then takes over what its child says.
local hs = {}

local health = nil
if obj.status ~= nil then
  health = obj.status.health
end

if health == nil or health.status == nil or health.status == "" then
  hs.status = "Progressing"
  hs.message = "Waiting for Application"
  return hs
end

hs.status = health.status
hs.message = health.message or ""
return hs
