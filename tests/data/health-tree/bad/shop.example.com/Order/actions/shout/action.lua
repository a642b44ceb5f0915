obj.spec.carrier = string.upper("post")
return obj
