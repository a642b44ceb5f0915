return {status = "Suspended", message = "a set, asked only where no folder before it fits"}
