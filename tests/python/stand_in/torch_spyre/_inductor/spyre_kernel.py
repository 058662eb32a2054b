from kerntrail.spyre import spyre_kernel as bodies


class SpyreKernel(bodies.SpyreKernel):
    def create_op_spec(self, op, is_reduction, args, op_info):
        return super().create_op_spec(op, is_reduction, args, op_info)
