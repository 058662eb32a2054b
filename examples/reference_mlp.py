"""The reference model of the provenance audit: two linear layers with a relu between them.

    python -m kerntrail record examples/reference_mlp.py

The three statements of `forward` are on lines 25, 26 and 27; debug handles of a run name them, and so do the tests:
keep them there.

"""

from __future__ import annotations

import torch
from torch import nn


class SimpleMLP(nn.Module):
    """Linear, relu, linear; the hidden layer is twice as wide as its neighbours."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc1(x)
        x = torch.relu(x)
        x = self.fc2(x)
        return x


def main() -> None:
    torch.manual_seed(0)
    model = SimpleMLP(128, 256, 128).half().eval()
    x = torch.randn(2, 128, dtype=torch.float16)
    with torch.no_grad():
        expected = model(x)
        result = torch.compile(model, backend="kerntrail_spyre")(x)
    error = (result.float() - expected.float()).abs().max().item()
    print(f"SimpleMLP(128, 256, 128), batch 2, float16: largest difference from eager {error:.3g}")


if __name__ == "__main__":
    main()
