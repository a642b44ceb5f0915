-- A ServingRuntime is a template that others refer to. No controller writes a status, so being there is being well.

local hs = {}
hs.status = "Healthy"
hs.message = "ServingRuntime is configured"
return hs
