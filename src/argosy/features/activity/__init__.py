"""Recent activity: syncs, promotions, Events and changes of settings."""
