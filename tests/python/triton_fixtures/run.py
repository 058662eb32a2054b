"""Compiles a model through Triton without, with and again without the probe.

    python -m triton_fixtures.run ROUTE MODEL MODE LEVEL FOLDER [WATCH]

ROUTE cpu: Inductor's Triton back end on device cpu, run through Triton's interpreter. ROUTE cuda: code for a device that
does not exist. MODE inference or training; LEVEL of torch's provenance, WATCH the probe's level. Writes FOLDER/capture.ndjson and FOLDER/result.json."""

import json
import os
import re
import sys
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402
import torch._inductor.debug  # noqa: E402
from torch._inductor.utils import run_and_get_code  # noqa: E402

import kerntrail  # noqa: E402
from triton_fixtures import driver, fake_cuda, libdevice  # noqa: E402
from triton_fixtures.models import MODELS  # noqa: E402


def prepare(route: str, level: int, folder: Path) -> None:
    driver.activate()
    libdevice.install()
    inductor.force_disable_caches = True
    inductor.compile_threads = 1
    inductor.trace.provenance_tracking_level = level
    if route == "cuda":
        fake_cuda.install(fake_cuda.build_guard(folder))
    else:
        inductor.cpu_backend = "triton"


def compile_and_run(route: str, name: str, training: bool):
    """Generated wrappers, and how far the result is from eager's."""
    torch._dynamo.reset()
    torch._inductor.debug.reset_inductor_kernel_provenance_debug_handle()  # lazy backwards go on counting otherwise
    torch.manual_seed(0)
    make, make_inputs = MODELS[name]
    model, inputs = make().train(training), make_inputs()
    expected = model(*inputs)
    compiled = torch.compile(model, backend=fake_cuda.backend) if route == "cuda" else torch.compile(model)

    def call():
        with torch.set_grad_enabled(training):
            result = compiled(*inputs)
            if training:
                result.sum().backward()
            return result

    fake_cuda.codes.clear()
    result, codes = run_and_get_code(call)
    codes = fake_cuda.codes[:] if route == "cuda" else codes
    return [same_names(code) for code in codes], (result - expected).abs().max().item()


def same_names(code: str) -> str:
    """Without what differs from compile to compile anyway: torch's number of the graph, the fresh cache folder."""
    code = re.sub(r"AOT ID: \['\d+_", "AOT ID: ['N_", code)
    return re.sub(r"# kernel path: \S+", "# kernel path: ...", code)


def main() -> None:
    route, name, mode, level, folder = sys.argv[1:6]
    watch = sys.argv[6] if len(sys.argv) > 6 else "passes"
    out = Path(folder)
    prepare(route, int(level), out)
    before, _ = compile_and_run(route, name, mode == "training")
    with kerntrail.capture(out / "capture.ndjson", level=watch):
        during, error = compile_and_run(route, name, mode == "training")
    after, _ = compile_and_run(route, name, mode == "training")
    result = {"before": before, "during": during, "after": after, "error": error}
    (out / "result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
