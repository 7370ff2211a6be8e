"""What is asked of a mechanism as a whole: where it closes, how it can move, what its motors can do, and the works' formulations."""
