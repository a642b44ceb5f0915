-- Every router that serves a Route writes its own entry; one refusal breaks the host name for its clients.
local hs = {}

if obj.status == nil or obj.status.ingress == nil or #obj.status.ingress == 0 then
  hs.status = "Progressing"
  hs.message = "Waiting for Route"
  return hs
end

-- What the router of one entry said of admission, or nil while it has said nothing.
local function admission(entry)
  for _, condition in ipairs(entry.conditions or {}) do
    if condition.type == "Admitted" then
      return condition
    end
  end
  return nil
end

local waiting = nil
for _, entry in ipairs(obj.status.ingress) do
  local router = entry.routerName or "unknown"
  local admitted = admission(entry)
  if admitted ~= nil and admitted.status == "False" then
    hs.status = "Degraded"
    hs.message = "Router " .. router .. " refused Route: " .. (admitted.message or admitted.reason or "no reason given")
    return hs
  end
  if admitted == nil or admitted.status ~= "True" then
    waiting = router
  end
end

if waiting ~= nil then
  hs.status = "Progressing"
  hs.message = "Waiting for router " .. waiting .. " to admit Route"
  return hs
end

hs.status = "Healthy"
hs.message = "Route is admitted"
return hs
