obj.spec.replicas = tonumber(actionParams.replicas)
return obj
