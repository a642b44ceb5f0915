"""Everything that tests share: one module for each thing, named after it."""
