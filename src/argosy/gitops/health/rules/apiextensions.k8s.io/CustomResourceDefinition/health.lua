local hs = {}

if obj.metadata ~= nil and obj.metadata.deletionTimestamp ~= nil then
  hs.status = "Progressing"
  hs.message = "CustomResourceDefinition is being deleted"
  return hs
end

local conditions = {}
if obj.status ~= nil then
  for _, condition in ipairs(obj.status.conditions or {}) do
    if condition.type ~= nil then
      conditions[condition.type] = condition
    end
  end
end

local function is(type, status)
  return conditions[type] ~= nil and conditions[type].status == status
end

local function say(type)
  return conditions[type].message or conditions[type].reason or type
end

if is("Terminating", "True") then
  hs.status = "Progressing"
  hs.message = "CustomResourceDefinition is being deleted: " .. say("Terminating")
  return hs
end

if is("NamesAccepted", "False") then
  hs.status = "Degraded"
  hs.message = "Names are not accepted: " .. say("NamesAccepted")
  return hs
end

-- Only definitions of the old v1beta1 kind get this far; the API server serves them without pruning or defaults.
if is("NonStructuralSchema", "True") then
  hs.status = "Degraded"
  hs.message = "Schema is not structural: " .. say("NonStructuralSchema")
  return hs
end

if is("Established", "True") then
  hs.status = "Healthy"
  hs.message = "CustomResourceDefinition is established"
  return hs
end

-- "Installing" lasts the few seconds that a cluster of API servers needs to agree.
if is("Established", "False") and conditions.Established.reason ~= "Installing" then
  hs.status = "Degraded"
  hs.message = "CustomResourceDefinition is not established: " .. say("Established")
  return hs
end

-- argo: differs: other conditions may be written before Established is; Argo CD says Degraded for that moment.
hs.status = "Progressing"
hs.message = "Waiting for CustomResourceDefinition"
return hs
