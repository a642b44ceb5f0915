"""The clusters that Applications are delivered to."""
