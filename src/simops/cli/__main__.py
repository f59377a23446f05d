"""`python -m simops.cli` is `simops`."""

import sys

from simops.cli.main import main

sys.exit(main())
