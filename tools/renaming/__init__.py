"""Parts of tools/rename_symbols.py: scopes of names, types of expressions, tables, and mentions in texts."""
