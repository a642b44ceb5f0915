-- An ImageStream without tags to import is a place that builds push to: it is ready as soon as it exists.
local hs = {}

local spec = obj.spec or {}
local status = obj.status or {}
local annotations = {}
if obj.metadata ~= nil and obj.metadata.annotations ~= nil then
  annotations = obj.metadata.annotations
end

local function import_condition(tag)
  for _, condition in ipairs(tag.conditions or {}) do
    if condition.type == "ImportSuccess" then
      return condition
    end
  end
  return nil
end

-- The newest generation of a tag that an import has finished with, be it well or badly.
local function seen_generation(tag)
  local seen = 0
  if tag.items ~= nil and tag.items[1] ~= nil then
    seen = tag.items[1].generation or 0
  end
  local condition = import_condition(tag)
  if condition ~= nil and (condition.generation or 0) > seen then
    seen = condition.generation
  end
  return seen
end

local imported = {}
for _, tag in ipairs(status.tags or {}) do
  if tag.tag ~= nil then
    imported[tag.tag] = tag
  end
end

-- Tags that follow another ImageStreamTag, or are mere references, are not imported.
local waiting = nil
for _, tag in ipairs(spec.tags or {}) do
  local is_imported = tag.from ~= nil and tag.from.kind == "DockerImage" and tag.reference ~= true
  if is_imported and tag.name ~= nil then
    local found = imported[tag.name]
    if found == nil or (tag.generation or 0) > seen_generation(found) then
      waiting = waiting or tag.name
      -- What is known of this tag is about an older spec.
      imported[tag.name] = nil
    end
  end
end

for _, tag in ipairs(status.tags or {}) do
  if tag.tag ~= nil and imported[tag.tag] ~= nil then
    local condition = import_condition(tag)
    if condition ~= nil and condition.status == "False" then
      hs.status = "Degraded"
      local why = condition.message or condition.reason or "no reason given"
      hs.message = "Import of tag " .. tag.tag .. " failed: " .. why
      return hs
    end
  end
end

if waiting ~= nil then
  hs.status = "Progressing"
  hs.message = "Waiting for the import of tag " .. waiting
  return hs
end

-- A whole repository to import: the annotation says that an import has been through.
if spec.dockerImageRepository ~= nil and status.tags == nil then
  if annotations["openshift.io/image.dockerRepositoryCheck"] == nil then
    hs.status = "Progressing"
    hs.message = "Waiting for ImageStream"
    return hs
  end
end

hs.status = "Healthy"
hs.message = "ImageStream is ready"
return hs
