-- Any change of this annotation makes the operator read the secret from its store again.
local os = require("os")
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["force-sync"] = os.date("!%Y-%m-%dT%XZ")
return obj
