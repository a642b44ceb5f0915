"""Command line: parts that all commands share. Knows no feature."""
