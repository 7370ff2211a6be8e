"""The old name of sarrus.formulations."""

raise ImportError("sarrus.works is now sarrus.formulations", name=__name__)
