"""The Spyre-format back end for torch.compile on device cpu.

Python holds only what torch asks for as Python objects: registration, decompositions, FX passes, lowerings and the
wrapper class. Lowering to OpSpecs, layouts, bundles and execution are C++ (kerntrail._native.spyre).
"""
