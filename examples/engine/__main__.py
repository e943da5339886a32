"""`python -m examples.engine`."""

import sys

from examples.engine.command import main

sys.exit(main())
