"""kerntrail: follows every kernel of a compiled PyTorch model back to the source lines that made it.

    import kerntrail
    with kerntrail.capture("out.ndjson"):
        model = torch.compile(model)
        model(x)

watches every compile inside the block and writes a capture, which `kerntrail report`, `matrix` and `lineage` read.
torch is imported only when a capture is opened.
"""

from kerntrail._capture import Capture, capture

__version__ = "0.1.0"
__all__ = ["Capture", "capture", "__version__"]
