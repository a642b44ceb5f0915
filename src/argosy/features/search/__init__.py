"""Search of the web UI: Applications, models, notebooks and pages by name."""
