local group = string.match(obj.apiVersion, "^(.*)/")
return {status = "Healthy", message = "anything " .. obj.kind .. " of " .. group}
