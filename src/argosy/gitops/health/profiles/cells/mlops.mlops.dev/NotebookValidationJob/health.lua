-- Profile cells: the phase decides, the message tells which cell.
-- Results come in two spellings: that of the CRD (Success, Failure) and that of older guides (success, error). Some
-- controllers write no errorType; then errorMessage begins with it.

local hs = {}
hs.status = "Progressing"

if obj.status == nil or obj.status.phase == nil then
  hs.message = "Initializing"
  return hs
end

-- What an earlier specification came to says nothing about the present one. Older controllers do not report it.
local observed = obj.status.observedGeneration
local generation = obj.metadata ~= nil and obj.metadata.generation or nil
if observed ~= nil and generation ~= nil and observed < generation then
  hs.message = "Waiting for the controller to observe generation " .. generation
  return hs
end

local failing = { error = true, Error = true, failure = true, Failure = true }
local successful = { success = true, Success = true }

local function starts_with(text, beginning)
  -- No text in UTF-8 holds byte 255, so whatever begins so lies between these two.
  return beginning <= text and text < beginning .. "\255"
end

-- The name at the beginning of "ModuleNotFoundError: No module named 'torch'", nil where there is none.
-- A check in argocd-cm has no string library, but it may compare: the next letter of a text is the greatest one
-- that can follow what is known without exceeding the text.
local function exception_name(text)
  local letters = {
    ".", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L",
    "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "_", "a", "b", "c", "d", "e", "f", "g", "h",
    "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y", "z",
  }
  local name = ""
  for _ = 1, 100 do
    local low, high = 1, #letters
    while low < high do
      local middle = (low + high + 1 - (low + high + 1) % 2) / 2
      if name .. letters[middle] <= text then
        low = middle
      else
        high = middle - 1
      end
    end
    if not starts_with(text, name .. letters[low]) then
      break
    end
    name = name .. letters[low]
  end
  if name ~= "" and (text == name or starts_with(text, name .. ":")) then
    return name
  end
  return nil
end

local function what_failed(result)
  if result.errorType ~= nil and result.errorType ~= "" then
    return result.errorType
  end
  if result.errorMessage ~= nil and result.errorMessage ~= "" then
    return exception_name(result.errorMessage) or result.errorMessage
  end
  return "Error"
end

local phase = obj.status.phase
local results = obj.status.results

if phase == "Succeeded" then
  hs.status = "Healthy"
  if results ~= nil then
    hs.message = "Succeeded - Executed " .. #results .. " cells"
  else
    hs.message = "Notebook validation succeeded"
  end
elseif phase == "Failed" then
  hs.status = "Degraded"
  for _, result in ipairs(results or {}) do
    if result.status ~= nil and failing[result.status] then
      hs.message = "Failed at cell " .. tostring(result.cellIndex or "?") .. ": " .. what_failed(result)
      return hs
    end
  end
  hs.message = "Validation failed"
  if obj.status.message ~= nil and obj.status.message ~= "" then
    hs.message = obj.status.message
  end
elseif phase == "ValidationRunning" then
  if results ~= nil then
    local completed = 0
    for _, result in ipairs(results) do
      if result.status ~= nil and successful[result.status] then
        completed = completed + 1
      end
    end
    hs.message = "Executing notebook (" .. completed .. " cells completed)"
  else
    hs.message = "Validating notebook"
  end
else
  hs.message = "Phase: " .. phase
end

return hs
