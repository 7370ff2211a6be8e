"""Loop closure: for one configuration, from any start, and along a path."""
