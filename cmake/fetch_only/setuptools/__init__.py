"""Stands in for setuptools while pip fetches an archive: none of the archive's code runs, and nothing that would build it is needed."""
