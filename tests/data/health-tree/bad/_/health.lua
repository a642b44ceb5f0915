return {status = "Healthy", message = "any kind of the core group"}
