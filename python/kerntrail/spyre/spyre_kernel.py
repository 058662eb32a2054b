"""SpyreKernel: one kernel while it is generated, and the recorder of loop bodies.

Both classes and their bodies are C++. `codegen_node(node)` sets `current_node` and calls `create_op_spec(op,
is_reduction, args, op_info)` for each device operation of the buffer; `codegen_kernel()` gives the kernel's text.
"""

from torch._inductor.ops_handler import DefaultHandler

from kerntrail import _native

SpyreKernel = _native.spyre.make_kernel_class(__name__)
OpsRecorder = _native.spyre.make_recorder_class(DefaultHandler, __name__)
