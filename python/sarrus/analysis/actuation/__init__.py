"""What motors must do for a motion, and how redundant ones share it."""
