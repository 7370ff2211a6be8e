"""`python -m sarrus` is the command `sarrus`."""

import sys

from .cli import main

sys.exit(main())
