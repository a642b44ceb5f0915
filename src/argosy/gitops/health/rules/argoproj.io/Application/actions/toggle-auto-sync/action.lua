-- Only `enabled` changes, so that prune and selfHeal are still set when it is toggled again.
if obj.spec.syncPolicy == nil then
  obj.spec.syncPolicy = {}
end
if obj.spec.syncPolicy.automated == nil then
  obj.spec.syncPolicy.automated = { enabled = true }
else
  obj.spec.syncPolicy.automated.enabled = obj.spec.syncPolicy.automated.enabled == false
end
return obj
