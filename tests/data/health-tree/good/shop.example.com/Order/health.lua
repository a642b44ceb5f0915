-- Tells what it was given: which type the fields have, so that the tests see how YAML was read.
local status = obj.status
if status == nil then
  return nil
end
if status.said ~= nil then
  return status.said
end
if status.types then
  local words = {}
  for _, name in ipairs({"at", "spell", "open", "words", "big"}) do
    table.insert(words, name .. " " .. type(status[name]) .. " " .. tostring(status[name]))
  end
  -- the libraries that a bundled rule has
  return {status = "Healthy", message = string.lower(table.concat(words, ", "))}
end
local hs = {status = "Progressing", message = "Order " .. tostring(obj.metadata.name) .. " is " .. tostring(status.phase)}
if status.phase == "Delivered" then
  hs.status = "Healthy"
end
return hs
