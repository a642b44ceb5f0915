local os = require("os")
local template = obj.spec.template
template.metadata = template.metadata or {}
template.metadata.annotations = template.metadata.annotations or {}
template.metadata.annotations["kubectl.kubernetes.io/restartedAt"] = os.date("!%Y-%m-%dT%XZ")
return obj
