"""The pages: one file a page. Each has ROUTES, and LIVE where parts of it are live."""
