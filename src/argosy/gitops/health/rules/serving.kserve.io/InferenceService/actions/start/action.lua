-- "false" and no removal: where it is the only annotation, Argo CD would put it back.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["serving.kserve.io/stop"] = "false"
return obj
