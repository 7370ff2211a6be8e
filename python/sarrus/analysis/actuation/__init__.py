"""Motor efforts of a motion, and the wrenches of joints."""
