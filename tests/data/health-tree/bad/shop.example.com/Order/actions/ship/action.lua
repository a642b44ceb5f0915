if actionParams.carrier == nil then
  error("carrier is needed")
end
obj.spec.carrier = actionParams.carrier
obj.spec.items = {"novel", "atlas"}
return obj
