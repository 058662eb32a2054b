from kerntrail import _native
from kerntrail.spyre import async_compile as bodies

_directory = bodies.get_output_dir


def get_output_dir(kernel_name):
    return _directory(kernel_name)


class SpyreAsyncCompile:
    def sdsc(self, kernel_name, op_specs):
        """`op_specs` are objects, as the reference's wrapper hands them over."""
        directory = get_output_dir(kernel_name)
        return bodies.SpyreSDSCKernelRunner(kernel_name, _native.spyre.build_kernel(op_specs, directory), directory)


class WrapperCompile:
    """What the generated module of our back end calls: from its text to the reference's call."""

    def sdsc(self, kernel_name, text):
        return SpyreAsyncCompile().sdsc(kernel_name, _native.spyre.parse_op_specs(text))

    def wait(self, scope):
        pass
