"""The list of Applications, with actions on several of them."""
