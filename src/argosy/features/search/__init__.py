"""Search on the page: Applications, models, notebooks and pages by name."""
