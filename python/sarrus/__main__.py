"""`python -m sarrus` is the command `sarrus`."""

import sys

from .cli.parser import main

sys.exit(main())
