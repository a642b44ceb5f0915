obj.metadata.name = "another"
return obj
