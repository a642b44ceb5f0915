"""Code that tests share: one module per topic."""
