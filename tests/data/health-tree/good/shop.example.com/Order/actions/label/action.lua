local os = require("os")
if string == nil and math == nil and io == nil and os.execute == nil and os.time() > 0 and os.date ~= nil then
  error("string is nil, require gives time and date", 0)
end
return obj
