"""Analysis of whole mechanisms: closed configurations, mobility, actuation, linear equations of motion."""
