"""`python -m memplan`: the same as the program `memplan`."""

import sys

from memplan.cli import main

if __name__ == "__main__":
    sys.exit(main())
