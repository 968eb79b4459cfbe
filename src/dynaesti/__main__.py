"""`python -m dynaesti` is the command line."""

import sys

from dynaesti.commands.main import main

sys.exit(main())
