"""Inductor's code for a CUDA device that does not exist: passes, lowering and scheduling are those of a GPU, the code
is generated and not run. What runs in its place is the graph on the CPU, so that a backward comes about.

Graphs are moved to the device after AOTAutograd: autograd over fake CUDA tensors kills a process whose torch has no
CUDA."""

import collections
import copy
import ctypes
import os
import subprocess
import types
from pathlib import Path

import torch
import torch._dynamo.device_interface as device_interface
import torch._inductor.constant_folding as constant_folding
import torch.utils._triton as torch_triton
from torch._dynamo.utils import detect_fake_mode
from torch._inductor.compile_fx import compile_fx, compile_fx_inner, fake_tensor_prop
from torch._inductor.graph import GraphLowering

Properties = collections.namedtuple(
    "Properties",
    "name major minor total_memory multi_processor_count regs_per_multiprocessor max_threads_per_multi_processor"
    " max_threads_per_block warp_size shared_memory_per_block shared_memory_per_block_optin"
    " shared_memory_per_multiprocessor gcnArchName L2_cache_size",
)
H100 = Properties("NVIDIA H100 80GB HBM3", 9, 0, 80 << 30, 132, 65536, 2048, 1024, 32, 49152, 232448, 233472, "", 50 << 20)

codes: list[str] = []  # of the wrappers, in the order they were generated


def build_guard(folder: Path) -> Path:
    """The device guard is C++: torch has no way to register one from Python."""
    torch_root = Path(torch.__file__).parent
    library = folder / "libguard.so"
    subprocess.run(
        [os.environ.get("CXX", "g++"), "-std=c++20", "-O0", "-shared", "-fPIC", "-o", str(library),
         str(Path(__file__).with_name("guard.cpp")), f"-I{torch_root / 'include'}", f"-L{torch_root / 'lib'}", "-lc10",
         f"-Wl,-rpath,{torch_root / 'lib'}"],
        check=True,
    )
    return library


def install(guard: Path) -> None:
    ctypes.CDLL(str(guard)).install_guard()
    device_interface.caching_worker_device_properties["cuda"] = [H100]
    device_interface.caching_worker_current_devices["cuda"] = 0
    torch_triton.has_triton.cache_clear()
    interface = {
        "is_available": lambda: True, "get_device_properties": lambda device=None: H100,
        "get_compute_capability": lambda device=None: 90, "current_device": lambda: 0, "device_count": lambda: 1,
        "get_raw_stream": lambda device=0: 0, "synchronize": lambda device=None: None, "set_device": lambda device: None,
        "exchange_device": lambda device: 0, "maybe_exchange_device": lambda device: 0,
        "is_bf16_supported": lambda *args, **options: True, "is_triton_capable": lambda device=None: True,
    }
    for name, body in interface.items():
        setattr(device_interface.CudaInterface, name, staticmethod(body))
    module = {
        "get_device_properties": lambda device=None: H100, "get_device_capability": lambda device=None: (9, 0),
        "current_device": lambda: 0, "device_count": lambda: 1, "synchronize": lambda device=None: None,
        "get_device_name": lambda device=None: H100.name,
    }
    for name, body in module.items():
        setattr(torch.cuda, name, body)
    # Constant folding really runs what it folds.
    constant_folding.ConstantFolder.call_function = lambda self, target, args, kwargs: target(
        *args, **{key: torch.device("cpu") if isinstance(value, torch.device) else value for key, value in kwargs.items()}
    )
    GraphLowering._compile_to_module_lines = keep_text


def keep_text(self, wrapper_code):
    codes.append(wrapper_code.value)
    module = types.ModuleType("never_run")
    module.call, module.runner, module.__file__ = (lambda args: None), None, "never_run.py"
    return module


def move_to_cuda(graph: torch.fx.GraphModule) -> None:
    def moved(value):
        is_cpu = value == "cpu" if isinstance(value, str) else isinstance(value, torch.device) and value.type == "cpu"
        return (torch.device("cuda:0") if isinstance(value, torch.device) else "cuda:0") if is_cpu else value

    for node in graph.graph.nodes:
        node.args = torch.fx.node.map_aggregate(node.args, moved)
        node.kwargs = torch.fx.node.map_aggregate(node.kwargs, moved)
    graph.recompile()


def inner_compile(graph, example_inputs, **options):
    on_cpu = copy.deepcopy(graph)
    fake_mode = detect_fake_mode(example_inputs) or torch._guards.TracingContext.get().fake_mode
    move_to_cuda(graph)
    inputs = []
    for value in example_inputs:
        if isinstance(value, torch.Tensor):
            with fake_mode:
                value = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="cuda:0")
        inputs.append(value)
    fake_tensor_prop(graph, inputs, True)
    compile_fx_inner(graph, inputs, **options)

    def run(args):
        result = on_cpu(*args)
        args.clear()
        return result

    run._boxed_call = True
    return run


def backend(graph, inputs):
    return compile_fx(graph, inputs, inner_compile=inner_compile)
