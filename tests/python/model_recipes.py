"""Recipes of models from other packages, with tiny configurations and random weights: no hub, no torchvision, no GPU.

Beside those here, reference models that were left out, and why: openai-whisper, x-transformers, monai, torch-geometric
and the like repeat what these and `recipes` exercise, each at the price of a package; mambapy's scan is an
autograd.Function (`own_autograd`); torchao's weights are tensor subclasses, whose inputs torch renames.
"""

from __future__ import annotations

from typing import Any

import torch
from recipes import TRAINING, Compile, Recipe, infer, outputs_of, randn
from torch import Tensor, nn


class Plain(nn.Module):
    """A model whose output is a dataclass, as a function of tensors that returns tensors."""

    def __init__(self, model: nn.Module, *wanted: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.wanted, self.fixed = model, wanted, fixed

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        out = self.model(*inputs, **self.fixed)
        return [getattr(out, name) for name in self.wanted]


def ids(rows: int, columns: int) -> Tensor:
    return torch.randint(1, 64, (rows, columns))


def llama(compile: Compile) -> list[Tensor]:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64)).eval()
    return infer(compile, Plain(model, "logits", use_cache=False), ids(1, 8))


def bert(compile: Compile) -> list[Tensor]:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model = BertModel(BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)).train()
    result = outputs_of(compile(Plain(model, "last_hidden_state", "pooler_output"))(ids(2, 8)))
    sum(part.square().sum() for part in result).backward()
    return [*result, model.embeddings.word_embeddings.weight.grad]


def t5(compile: Compile) -> list[Tensor]:
    from transformers import T5Config, T5ForConditionalGeneration

    class Translate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = T5ForConditionalGeneration(T5Config(
                vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4, decoder_start_token_id=0))

        def forward(self, source: Tensor, target: Tensor) -> Tensor:
            return self.model(input_ids=source, decoder_input_ids=target, use_cache=False).logits

    torch.manual_seed(0)
    return infer(compile, Translate().eval(), ids(1, 8), ids(1, 4))


def mixtral(compile: Compile) -> list[Tensor]:
    from transformers import MixtralConfig, MixtralForCausalLM

    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4)).eval()
    return infer(compile, Plain(model, "logits", use_cache=False), ids(1, 8))


def mamba(compile: Compile) -> list[Tensor]:
    from transformers import MambaConfig, MambaModel

    torch.manual_seed(0)
    model = MambaModel(MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, state_size=4)).eval()
    return infer(compile, Plain(model, "last_hidden_state", use_cache=False), ids(1, 8))


def vit(compile: Compile) -> list[Tensor]:
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    model = ViTModel(ViTConfig(image_size=32, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                               intermediate_size=64)).eval()
    return infer(compile, Plain(model, "last_hidden_state"), randn(1, 3, 32, 32))


def wav2vec(compile: Compile) -> list[Tensor]:
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    torch.manual_seed(0)
    model = Wav2Vec2Model(Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16),
        conv_stride=(5, 2), conv_kernel=(10, 3), num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)).eval()
    return infer(compile, Plain(model, "last_hidden_state"), randn(1, 4000))


def unet(compile: Compile) -> list[Tensor]:
    from diffusers import UNet2DModel

    torch.manual_seed(0)
    model = UNet2DModel(
        sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")).eval()
    return infer(compile, Plain(model, "sample"), randn(1, 3, 16, 16), torch.tensor(3))


def autoencoder(compile: Compile) -> list[Tensor]:
    from diffusers import AutoencoderKL

    torch.manual_seed(0)
    model = AutoencoderKL(
        block_out_channels=(16, 32), norm_num_groups=8, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4).eval()
    return infer(compile, Plain(model, "sample"), randn(1, 3, 32, 32))


MODELS = [
    Recipe("llama", llama, "P1: RoPE, RMSNorm, grouped queries", long=True, needs="transformers"),
    Recipe("bert", bert, "P2: encoder, training", directions=TRAINING, long=True, needs="transformers"),
    Recipe("t5", t5, "P3: encoder-decoder, relative positions", long=True, needs="transformers"),
    Recipe("mixtral", mixtral, "P4: mixture of experts", long=True, needs="transformers"),
    Recipe("mamba", mamba, "P5: a state-space loop", long=True, needs="transformers"),
    Recipe("vit", vit, "P6: vision transformer", long=True, needs="transformers"),
    Recipe("wav2vec", wav2vec, "P7: conv1d, group norm, weight norm", long=True, needs="transformers"),
    Recipe("unet", unet, "P8: skip connections, group norm", long=True, needs="diffusers"),
    Recipe("autoencoder", autoencoder, "P9: encoder and decoder convolutions", long=True, needs="diffusers"),
]
