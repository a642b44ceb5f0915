return "money"
