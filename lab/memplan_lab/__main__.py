"""`python -m memplan_lab`: the same as the program `memplan-lab`."""

import sys

from memplan.__main__ import start

__all__ = ["main"]


def main() -> int:
    """Run one command of the laboratory; return its exit code."""

    def run() -> int:
        from memplan_lab import cli

        return cli.main()

    return start(run)


if __name__ == "__main__":
    sys.exit(main())
