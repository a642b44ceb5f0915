return {status = "Degraded", message = "the rule of Refund judged a " .. obj.kind}
