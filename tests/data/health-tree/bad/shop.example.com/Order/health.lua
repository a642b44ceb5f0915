if obj.status.fault ~= nil then
  return obj.status.missing.field
end
if obj.status.word ~= nil then
  return obj.status.word
end
return {status = "Healthy", message = tostring(obj.status.phase)}
