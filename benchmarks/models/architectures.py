"""Models as the classes of `transformers` give them, tiny and with random weights: nothing is fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers

_WORDS = 96
"""Size of the vocabularies."""
_LENGTH = 12
"""Tokens of a text."""


@dataclass(frozen=True)
class Architecture:
    """``model`` makes one in evaluation mode; ``inputs`` makes what it is called with, by name."""

    name: str
    model: Callable[[], torch.nn.Module]
    inputs: Callable[[], dict[str, torch.Tensor]]


def _text() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(3, _WORDS, (1, _LENGTH), generator=generator)
    return {"input_ids": words, "attention_mask": torch.ones_like(words)}


def _words() -> dict[str, torch.Tensor]:
    return {"input_ids": _text()["input_ids"]}


def _image(size: int = 32) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))}


def _sound() -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(1, 2000, generator=torch.Generator().manual_seed(1))}


def _spectrum() -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(1, 16, 40, generator=torch.Generator().manual_seed(1))}


_ENCODER = {
    "vocab_size": _WORDS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
_DECODER = {**_ENCODER, **_ENDS}
_GROUPED = {**_DECODER, "num_key_value_heads": 2}
_VISION = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


def of(
    name: str,
    model: str,
    config: str,
    options: dict[str, Any],
    inputs: Callable[[], dict[str, torch.Tensor]],
    part: Callable[[Any], Any] = lambda model: model,
) -> Architecture:
    """Return ``part`` of a model of the class ``model``, with the options of its ``config``."""

    def make() -> torch.nn.Module:
        torch.manual_seed(0)
        made = getattr(transformers, model)(getattr(transformers, config)(**options))
        chosen: torch.nn.Module = part(made).eval()
        return chosen

    return Architecture(name, make, inputs)


ARCHITECTURES: tuple[Architecture, ...] = (
    of("BERT", "BertModel", "BertConfig", _ENCODER, _text),
    of("RoBERTa", "RobertaModel", "RobertaConfig", {**_ENCODER, "pad_token_id": 1}, _text),
    of(
        "DistilBERT",
        "DistilBertModel",
        "DistilBertConfig",
        {"vocab_size": _WORDS, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
        _text,
    ),
    of("ALBERT", "AlbertModel", "AlbertConfig", {**_ENCODER, "embedding_size": 16}, _text),
    of("ELECTRA", "ElectraModel", "ElectraConfig", {**_ENCODER, "embedding_size": 16}, _text),
    of(
        "DeBERTa",
        "DebertaV2Model",
        "DebertaV2Config",
        {**_ENCODER, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        _text,
    ),
    of(
        "T5 encoder",
        "T5EncoderModel",
        "T5Config",
        {"vocab_size": _WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
        _text,
    ),
    of(
        "Whisper encoder",
        "WhisperModel",
        "WhisperConfig",
        {
            "vocab_size": _WORDS,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 32,
            **_ENDS,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        _spectrum,
        lambda model: model.get_encoder(),
    ),
    of("CLIP text", "CLIPTextModel", "CLIPTextConfig", {**_DECODER, "projection_dim": 32}, _text),
    of("CLIP vision", "CLIPVisionModel", "CLIPVisionConfig", {**_VISION, "projection_dim": 32}, _image),
    of("ViT", "ViTModel", "ViTConfig", _VISION, _image),
    of("DeiT", "DeiTModel", "DeiTConfig", _VISION, _image),
    of("DINOv2", "Dinov2Model", "Dinov2Config", _VISION, _image),
    of(
        "Swin",
        "SwinModel",
        "SwinConfig",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        _image,
    ),
    of(
        "ConvNeXt",
        "ConvNextModel",
        "ConvNextConfig",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
        _image,
    ),
    of(
        "ResNet",
        "ResNetModel",
        "ResNetConfig",
        {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"},
        _image,
    ),
    of("MobileNetV2", "MobileNetV2Model", "MobileNetV2Config", {"image_size": 32, "depth_multiplier": 0.25}, _image),
    of(
        "SegFormer",
        "SegformerModel",
        "SegformerConfig",
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [2, 1],
            "hidden_sizes": [16, 32],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "num_attention_heads": [1, 2],
            "mlp_ratios": [2, 2],
        },
        _image,
    ),
    of(
        "wav2vec2",
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        {
            **_ENCODER,
            "conv_dim": [16, 16],
            "conv_kernel": [10, 3],
            "conv_stride": [5, 2],
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 8,
            "num_conv_pos_embedding_groups": 2,
        },
        _sound,
    ),
    of(
        "GPT-2",
        "GPT2LMHeadModel",
        "GPT2Config",
        {"vocab_size": _WORDS, "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4, **_ENDS},
        _words,
    ),
    of("GPT-NeoX", "GPTNeoXForCausalLM", "GPTNeoXConfig", _DECODER, _words),
    of("OPT", "OPTForCausalLM", "OPTConfig", {**_DECODER, "ffn_dim": 64, "word_embed_proj_dim": 32}, _words),
    of(
        "BLOOM",
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": _WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 1, "eos_token_id": 2},
        _words,
    ),
    of("Llama", "LlamaForCausalLM", "LlamaConfig", _GROUPED, _words),
    of("Mistral", "MistralForCausalLM", "MistralConfig", {**_GROUPED, "sliding_window": 8}, _words),
    of("Qwen2", "Qwen2ForCausalLM", "Qwen2Config", _GROUPED, _words),
    of("Qwen3", "Qwen3ForCausalLM", "Qwen3Config", {**_GROUPED, "head_dim": 8}, _words),
    of("Gemma", "GemmaForCausalLM", "GemmaConfig", {**_GROUPED, "head_dim": 8}, _words),
    of("Phi-3", "Phi3ForCausalLM", "Phi3Config", _GROUPED, _words),
    of(
        "Mixtral",
        "MixtralForCausalLM",
        "MixtralConfig",
        {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
        _words,
    ),
    of(
        "Mamba",
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": _WORDS, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, **_ENDS},
        _words,
    ),
)
