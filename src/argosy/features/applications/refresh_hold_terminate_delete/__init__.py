"""Actions on an Application: refresh, hold, release, terminate, confirm a deletion, delete."""
