"""Mechanisms that nothing ties to the ground: momentum decides how their base moves."""
