"""SuperDSCScheduling: groups scheduler nodes into bundles and defines one kernel for each.

The class and its bodies are C++ (python/src/spyre_scheduling.cpp). Node order is kept; consecutive nodes go to one bundle.
"""

from torch._inductor.scheduler import BaseScheduling

from kerntrail import _native

SuperDSCScheduling = _native.spyre.make_scheduling_class(BaseScheduling, __name__)
