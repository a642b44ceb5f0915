local actions = {}
actions["cancel"] = {}
actions["refund"] = {disabled = obj.status == nil}
actions["ship"] = {
  iconClass = "fa fa-truck",
  displayName = "Ship it",
  params = {{name = "carrier", default = "post"}, {name = "speed"}},
}
if obj.metadata.labels ~= nil then
  actions["label"] = {string.upper("a list says nothing")}
end
return actions
