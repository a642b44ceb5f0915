return {{operation = "create", resource = {apiVersion = "v1", kind = "ConfigMap", metadata = {name = "books-invoice"}, data = {paid = 1}}}}
