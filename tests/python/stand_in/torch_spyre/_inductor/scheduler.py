from kerntrail.spyre import scheduling as bodies


class SuperDSCScheduling(bodies.SuperDSCScheduling):
    def define_kernel(self, src_code, node_schedule, kernel):
        return super().define_kernel(src_code, node_schedule, kernel)
