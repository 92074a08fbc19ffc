"""`python -m memplan_lab`: the same as the program `memplan-lab`."""

import sys

from memplan_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
