if obj.spec.loud then
  return "no table"
end
return {ship = {disabled = false, iconClass = "truck", displayName = "Ship", params = {{name = "carrier"}}}}
