"""One motion or many: integration, limits, trajectories and their files."""
