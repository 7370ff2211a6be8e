"""How a mechanism can move, and which of its constraints and reactions say something."""
