"""`python -m dynaesti` is the command line."""

import sys

from dynaesti.cli import main

sys.exit(main())
