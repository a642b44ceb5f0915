-- A ClusterServingRuntime is a template that others refer to. No controller writes a status, so being there is being well.

local hs = {}
hs.status = "Healthy"
hs.message = "ClusterServingRuntime is configured"
return hs
