-- A BuildConfig only says how to build: its status holds a counter and nothing that can fail, and may be empty for
-- ever. So a missing status is no reason to wait; the outcome is in the Builds.
local hs = {}

local annotations = {}
if obj.metadata ~= nil and obj.metadata.annotations ~= nil then
  annotations = obj.metadata.annotations
end

if annotations["openshift.io/build-config.paused"] == "true" then
  hs.status = "Suspended"
  hs.message = "BuildConfig is paused: no new Build starts"
  return hs
end

hs.status = "Healthy"
hs.message = "BuildConfig is ready"
return hs
