local depth = facts ~= nil and facts.depths ~= nil and facts.depths[obj.metadata.name]
if not depth then
  return {status = "Progressing", message = "nobody knows how deep it is"}
end
return {status = "Healthy", message = depth .. " deep"}
