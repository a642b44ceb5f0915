obj.spec.address = {}
return {{operation = "patch", resource = obj}}
