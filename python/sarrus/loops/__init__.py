"""What closed loops add to a mechanism: one module a question, each a part of :class:`~sarrus.Mechanism`."""
