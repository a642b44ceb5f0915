local actions = {}
actions["restart"] = {}
return actions
