local os = require("os")
local job = {apiVersion = "batch/v1", kind = "Job", spec = obj.spec.jobTemplate.spec}
job.metadata = {name = obj.metadata.name .. "-" .. os.date("!%Y%m%d%H%M%S"), namespace = obj.metadata.namespace}
return {{operation = "create", resource = job}}
