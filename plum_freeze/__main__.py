"""`python -m plum_freeze PACKAGE`."""

import sys

from plum_freeze._cli import main

if __name__ == "__main__":
    sys.exit(main())
