"""The nets, with random weights: classes of `transformers` where it has them, and modules of this file."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.models.architectures import Architecture, of

_CLASSES = 1000
_WORDS, _TOKENS = 4096, 64
_ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def _drawn(name: str, *shape: int) -> Callable[[], dict[str, Tensor]]:
    return lambda: {name: torch.randn(*shape, generator=torch.Generator().manual_seed(1))}


def _tokens() -> dict[str, Tensor]:
    return {"input_ids": torch.randint(3, _WORDS, (1, _TOKENS), generator=torch.Generator().manual_seed(1))}


def _image(extent: int) -> Callable[[], dict[str, Tensor]]:
    return _drawn("pixel_values", 1, 3, extent, extent)


class SqueezeExcite(nn.Module):
    """Weights each channel by two products of the channels' means (Hu et al. 2017)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.weights = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.ReLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        weighted: Tensor = x * self.weights(x)
        return weighted


class Bottleneck(nn.Module):
    """Expand, depthwise convolution, squeeze and excite, project (Howard et al. 2019); ``squeezed`` may be 0."""

    def __init__(
        self,
        inputs: int,
        kernel: int,
        hidden: int,
        outputs: int,
        squeezed: int,
        activation: type[nn.Module],
        stride: int,
    ) -> None:
        super().__init__()
        self.adds = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            *([] if hidden == inputs else [_convolution(inputs, hidden, 1, activation)]),
            _convolution(hidden, hidden, kernel, activation, stride=stride, groups=hidden),
            *([SqueezeExcite(hidden, squeezed)] if squeezed else []),
            _convolution(hidden, outputs, 1, nn.Identity),
        )

    def forward(self, x: Tensor) -> Tensor:
        computed: Tensor = self.body(x)
        return x + computed if self.adds else computed


def _convolution(
    inputs: int, outputs: int, kernel: int, activation: type[nn.Module], *, stride: int = 1, groups: int = 1
) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs, eps=1e-3), activation())


_BLOCKS: tuple[tuple[int, int, int, int, type[nn.Module], int], ...] = (
    (3, 16, 16, 0, nn.ReLU, 1),
    (3, 64, 24, 0, nn.ReLU, 2),
    (3, 72, 24, 0, nn.ReLU, 1),
    (5, 72, 40, 24, nn.ReLU, 2),
    (5, 120, 40, 32, nn.ReLU, 1),
    (5, 120, 40, 32, nn.ReLU, 1),
    (3, 240, 80, 0, nn.Hardswish, 2),
    (3, 200, 80, 0, nn.Hardswish, 1),
    (3, 184, 80, 0, nn.Hardswish, 1),
    (3, 184, 80, 0, nn.Hardswish, 1),
    (3, 480, 112, 120, nn.Hardswish, 1),
    (3, 672, 112, 168, nn.Hardswish, 1),
    (5, 672, 160, 168, nn.Hardswish, 2),
    (5, 960, 160, 240, nn.Hardswish, 1),
    (5, 960, 160, 240, nn.Hardswish, 1),
)
"""Kernel, hidden channels, outputs, squeezed channels, activation and stride of MobileNetV3-Large's blocks."""


def _mobilenet_v3() -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = [_convolution(3, 16, 3, nn.Hardswish, stride=2)]
    inputs = 16
    for kernel, hidden, outputs, squeezed, activation, stride in _BLOCKS:
        layers.append(Bottleneck(inputs, kernel, hidden, outputs, squeezed, activation, stride))
        inputs = outputs
    layers += [_convolution(inputs, 960, 1, nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, _CLASSES)).eval()


class KeywordSpotting(nn.Module):
    """A convolution over time and frequency, two layers of GRU, and the classes from the last step."""

    def __init__(self, bands: int, hidden: int, words: int) -> None:
        super().__init__()
        self.convolution = nn.Sequential(nn.Conv2d(1, 16, (5, 3), stride=(2, 2), padding=(2, 1)), nn.ReLU())
        self.cells = nn.GRU(16 * bands // 2, hidden, num_layers=2, batch_first=True)
        self.classes = nn.Linear(hidden, words)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.convolution(x.unsqueeze(1)).transpose(1, 2).flatten(2)
        classes: Tensor = self.classes(self.cells(steps)[0][:, -1])
        return classes


def _keyword_spotting() -> nn.Module:
    torch.manual_seed(0)
    return KeywordSpotting(bands=40, hidden=128, words=12).eval()


_NETS = (
    of(
        "resnet-18",
        "ResNetForImageClassification",
        "ResNetConfig",
        {"layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "num_labels": _CLASSES},
        _image(224),
    ),
    of("resnet-50", "ResNetForImageClassification", "ResNetConfig", {"num_labels": _CLASSES}, _image(224)),
    of(
        "vit-tiny",
        "ViTForImageClassification",
        "ViTConfig",
        {"hidden_size": 192, "num_attention_heads": 3, "intermediate_size": 768, "num_labels": _CLASSES},
        _image(224),
    ),
    of(
        "efficientnet-b0",
        "EfficientNetForImageClassification",
        "EfficientNetConfig",
        {
            "image_size": 224,
            "width_coefficient": 1.0,
            "depth_coefficient": 1.0,
            "hidden_dim": 1280,
            "num_labels": _CLASSES,
        },
        _image(224),
    ),
    Architecture("mobilenet-v3-large", _mobilenet_v3, _drawn("input", 1, 3, 224, 224)),
    of(
        "convnext-atto",
        "ConvNextForImageClassification",
        "ConvNextConfig",
        {"hidden_sizes": [40, 80, 160, 320], "depths": [2, 2, 6, 2], "image_size": 160, "num_labels": _CLASSES},
        _image(160),
    ),
    of(
        "llama-prefill",
        "LlamaForCausalLM",
        "LlamaConfig",
        {
            "vocab_size": _WORDS,
            "hidden_size": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "intermediate_size": 1376,
            "max_position_embeddings": 256,
            "use_cache": False,
            **_ENDS,
        },
        _tokens,
    ),
    of(
        "whisper-encoder",
        "WhisperModel",
        "WhisperConfig",
        {
            "vocab_size": 96,
            "d_model": 256,
            "encoder_layers": 4,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 1024,
            "decoder_ffn_dim": 64,
            "max_source_positions": 200,
            "max_target_positions": 32,
            **_ENDS,
            "decoder_start_token_id": 1,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        _drawn("input_features", 1, 80, 400),
        lambda model: model.get_encoder(),
    ),
    Architecture("keyword-spotting", _keyword_spotting, _drawn("x", 1, 98, 40)),
)
NETS = {net.name: net for net in _NETS}
"""Each by its name. Images are of 224 x 224 pixels (ConvNeXt: 160 x 160), prompts of 64 tokens, sounds of 4 and 1 s."""
