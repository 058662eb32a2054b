"""`python -m kerntrail VERB ...`: the same verbs as the `kerntrail` program, in this interpreter."""

import sys

from kerntrail._record import main

sys.exit(main(sys.argv[1:]))
