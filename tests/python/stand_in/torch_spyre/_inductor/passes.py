from kerntrail.spyre import passes as bodies
from torch_spyre._inductor.provenance import SpyreGraphTransformObserver


class CustomPreGradPasses(bodies.CustomPreGradPasses):
    def __call__(self, graph):
        super().__call__(graph)


class CustomPostPasses(bodies.CustomPostPasses):
    def __call__(self, graph):
        super().__call__(graph)


class CustomPreSchedulingPasses(bodies.CustomPreSchedulingPasses):
    def __call__(self, graph):
        for fn in self.passes:
            with SpyreGraphTransformObserver(graph, fn.__name__, kind="graphlowering"):
                fn(graph)
