"""Loop closure: of one configuration, by a search from many initial guesses, and along a path."""
