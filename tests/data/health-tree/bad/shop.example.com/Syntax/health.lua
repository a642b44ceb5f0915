return {status = "Healthy"
