"""A stand-in for torch_spyre: its modules, classes, methods and module functions by name and signature, as far as tools
watch them, with the bodies of kerntrail.spyre. `install()` makes the back end go through them."""


def install() -> None:
    from kerntrail.spyre import async_compile, passes, provenance, scheduling, spyre_kernel
    from torch_spyre._inductor import passes as own_passes
    from torch_spyre._inductor import provenance as own_provenance
    from torch_spyre._inductor.scheduler import SuperDSCScheduling
    from torch_spyre._inductor.spyre_kernel import SpyreKernel
    from torch_spyre.execution.async_compile import WrapperCompile

    for name in ("CustomPreGradPasses", "CustomPostPasses", "CustomPreSchedulingPasses"):
        setattr(passes, name, getattr(own_passes, name))
    # The helpers stay ours; the one private function through which they all go is the stand-in's.
    provenance._append_transform = lambda *record: own_provenance._append_transform(*record)
    spyre_kernel.SpyreKernel = SpyreKernel
    scheduling.SuperDSCScheduling = SuperDSCScheduling
    async_compile.SpyreAsyncCompile = WrapperCompile
