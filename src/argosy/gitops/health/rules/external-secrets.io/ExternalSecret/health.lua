-- Ready=False is a failure, unless the message says that something was not found: the source may come later in the
-- same sync, and External Secrets tries again.

local hs = {}
hs.status = "Progressing"

if obj.status == nil then
  hs.message = "ExternalSecret status unknown"
  return hs
end

if obj.status.conditions == nil or next(obj.status.conditions) == nil then
  hs.message = "ExternalSecret initializing"
  return hs
end

-- Whether a text holds some words, among its first thousand bytes.
-- A check in argocd-cm has no string library, but it may compare: the next byte of a text is the greatest one that
-- can follow what is known without exceeding the text.
local function contains(text, words)
  local bytes = { -- those that occur in text, in order
    "\9", "\10", "\13", " ", "!", "\"", "#", "$", "%", "&", "'", "(", ")", "*", "+", ",", "-", ".", "/", "0", "1",
    "2", "3", "4", "5", "6", "7", "8", "9", ":", ";", "<", "=", ">", "?", "@", "A", "B", "C", "D", "E", "F", "G", "H",
    "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "[", "\\", "]", "^",
    "_", "`", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u",
    "v", "w", "x", "y", "z", "{", "|", "}", "~", "\128", "\129", "\130", "\131", "\132", "\133", "\134", "\135",
    "\136", "\137", "\138", "\139", "\140", "\141", "\142", "\143", "\144", "\145", "\146", "\147", "\148", "\149",
    "\150", "\151", "\152", "\153", "\154", "\155", "\156", "\157", "\158", "\159", "\160", "\161", "\162", "\163",
    "\164", "\165", "\166", "\167", "\168", "\169", "\170", "\171", "\172", "\173", "\174", "\175", "\176", "\177",
    "\178", "\179", "\180", "\181", "\182", "\183", "\184", "\185", "\186", "\187", "\188", "\189", "\190", "\191",
    "\192", "\193", "\194", "\195", "\196", "\197", "\198", "\199", "\200", "\201", "\202", "\203", "\204", "\205",
    "\206", "\207", "\208", "\209", "\210", "\211", "\212", "\213", "\214", "\215", "\216", "\217", "\218", "\219",
    "\220", "\221", "\222", "\223", "\224", "\225", "\226", "\227", "\228", "\229", "\230", "\231", "\232", "\233",
    "\234", "\235", "\236", "\237", "\238", "\239", "\240", "\241", "\242", "\243", "\244",
  }
  local known, read = "", {}
  for place = 1, 1000 do
    local low, high = 1, #bytes
    while low < high do
      local middle = (low + high + 1 - (low + high + 1) % 2) / 2
      if known .. bytes[middle] <= text then
        low = middle
      else
        high = middle - 1
      end
    end
    known = known .. bytes[low]
    read[place] = bytes[low]
    -- No text in UTF-8 holds byte 255, so whatever begins so lies between these two.
    if not (known <= text and text < known .. "\255") then
      return false
    end
    if place >= #words and table.concat(read, "", place - #words + 1, place) == words then
      return true
    end
  end
  return false
end

for _, condition in ipairs(obj.status.conditions) do
  if condition.type == "Ready" then
    local message = condition.message
    if message == nil or message == "" then
      message = condition.reason or "no reason given"
    end
    if condition.status == "True" then
      hs.status = "Healthy"
      hs.message = "Secret synced successfully"
      return hs
    elseif condition.status == "False" and contains(message, "not found") then
      hs.message = "Waiting for source secret: " .. message
      return hs
    elseif condition.status == "False" then
      hs.status = "Degraded"
      hs.message = "Sync failed: " .. message
      return hs
    end
  end
end

hs.message = "ExternalSecret syncing"
return hs
