"""Motor efforts that produce a motion, and the wrenches of joints in it."""
