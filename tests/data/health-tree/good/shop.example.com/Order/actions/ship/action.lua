local carrier = actionParams["carrier"]
if carrier == nil then
  error("carrier is needed")
end
if carrier ~= "post" then
  error("no such carrier: " .. carrier, 0)
end
obj.spec.carrier = carrier
obj.spec.notes = type(actionParams.days) .. " " .. actionParams.days .. ", " .. type(actionParams.insured) .. " " .. actionParams.insured
obj.spec.days = tonumber(actionParams.days)
return obj
