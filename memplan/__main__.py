"""`python -m memplan`: the same as the program `memplan`."""

import sys
from collections.abc import Callable

__all__ = ["main", "start"]


def start(program: Callable[[], int]) -> int:
    """Run a program that imports what it needs, and return its exit code.

    Ctrl-C is no defect: until a command listens to it, the program ends with 130 and no words.
    """
    try:
        return program()
    except KeyboardInterrupt:
        return 130


def main() -> int:
    """Run one command of the command line; return its exit code."""

    def run() -> int:
        from memplan import cli

        return cli.main()

    return start(run)


if __name__ == "__main__":
    sys.exit(main())
