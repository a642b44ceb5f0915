return {status = "Missing", message = obj.apiVersion}
