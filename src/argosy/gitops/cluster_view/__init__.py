"""A cluster kept fresh by watches: the page and the API read from it instead of asking the API server."""
