"""What every request passes, in this order: limits, host, route, who, origin, permission; and every answer: masking,
headers, audit. None of it is optional, and no route knows of it."""
