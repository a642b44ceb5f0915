"""Parts that the pages of an Application share."""
