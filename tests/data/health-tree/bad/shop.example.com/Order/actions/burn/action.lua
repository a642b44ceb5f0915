return {{operation = "delete", resource = obj}}
