-- KServe hands a component's annotations on to its Pods: in standard mode the Deployment rolls, in serverless mode a new
-- revision comes up and takes the traffic once it is ready. A change of the Deployment itself would be undone by KServe.
local os = require("os")
local now = os.date("!%Y-%m-%dT%XZ")
local components = { "predictor", "transformer", "explainer" }
for _, name in ipairs(components) do
  local component = obj.spec[name]
  if component ~= nil then
    if component.annotations == nil then
      component.annotations = {}
    end
    component.annotations["kubectl.kubernetes.io/restartedAt"] = now
  end
end
return obj
