"""Analysis of a mechanism: loop closure, mobility, motor efforts, reactions, linearisation and equilibrium."""
