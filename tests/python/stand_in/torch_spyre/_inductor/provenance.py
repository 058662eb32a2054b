from kerntrail.spyre import provenance as bodies

_append = bodies._append_transform


def _append_transform(carriers, new, transform):
    _append(carriers, new, transform)


class SpyreGraphTransformObserver:
    def __init__(self, target, pass_name, kind):
        self.target, self.pass_name, self.kind = target, pass_name, kind

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None
