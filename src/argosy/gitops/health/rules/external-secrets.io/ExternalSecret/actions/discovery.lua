local actions = {}
actions["refresh"] = {}
return actions
