local os = require("os")
local invoice = {apiVersion = "v1", kind = "ConfigMap"}
invoice.metadata = {name = obj.metadata.name .. "-invoice", namespace = obj.metadata.namespace}
invoice.data = {total = "12", extra = "not looked at"}
obj.status.invoicedAt = os.date("!%Y-%m-%dT%XZ")
return {{operation = "create", resource = invoice}, {operation = "patch", resource = obj}}
