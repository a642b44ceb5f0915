obj.spec.cancelled = true
obj.spec.by = "the test"
obj.spec.items[1].gift = {}
return obj
