"""The models, with random weights: what counts is their time, not their answer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.quality.cases.layers import conv_bn_relu


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut (He et al. 2015)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = conv_bn_relu(inputs, outputs, 3, stride=stride)
        self.second = conv_bn_relu(outputs, outputs, 3, activation=nn.Identity)
        self.shortcut = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else conv_bn_relu(inputs, outputs, 1, stride=stride, activation=nn.Identity)
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(self.first(x)) + self.shortcut(x))


def resnet18() -> nn.Module:
    """ResNet-18 for images of 3 x 224 x 224 and 1,000 classes."""
    layers: list[nn.Module] = [conv_bn_relu(3, 64, 7, stride=2), nn.MaxPool2d(3, stride=2, padding=1)]
    inputs = 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [ResidualBlock(inputs, outputs, stride), ResidualBlock(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class InvertedResidual(nn.Module):
    """Expand, depthwise convolution, project (Sandler et al. 2018)."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.adds = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            *([] if expansion == 1 else [conv_bn_relu(inputs, hidden, 1, activation=nn.ReLU6)]),
            conv_bn_relu(hidden, hidden, 3, stride=stride, groups=hidden, activation=nn.ReLU6),
            conv_bn_relu(hidden, outputs, 1, activation=nn.Identity),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v2() -> nn.Module:
    """MobileNetV2 with half of its repeated blocks, for images of 3 x 224 x 224 and 1,000 classes."""
    layers: list[nn.Module] = [conv_bn_relu(3, 32, 3, stride=2, activation=nn.ReLU6)]
    inputs = 32
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 2, 2), (6, 64, 2, 2), (6, 96, 1, 1), (6, 160, 2, 2), (6, 320, 1, 1))
    for expansion, outputs, stride, blocks in plan:
        for block in range(blocks):
            layers.append(InvertedResidual(inputs, outputs, stride if block == 0 else 1, expansion))
            inputs = outputs
    layers.append(conv_bn_relu(inputs, 1280, 1, activation=nn.ReLU6))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward part, normalised after each, as in BERT (Devlin et al. 2018)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.expand, self.contract = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.attention_norm, self.output_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape

        def by_head(projected: Tensor) -> Tensor:
            return projected.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = by_head(self.query(x)), by_head(self.key(x)), by_head(self.value(x))
        attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
        x = self.attention_norm(x + self.output(attended))
        return self.output_norm(x + self.contract(functional.gelu(self.expand(x))))


def bert() -> nn.Module:
    """Two layers of BERT-base, without the embedding."""
    return nn.Sequential(*(EncoderLayer(768, 12) for _ in range(2)))


def mlp() -> nn.Module:
    """Three linear layers for 784 features and 10 classes."""
    return nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10), nn.Softmax(-1)
    )


class UNet(nn.Module):
    """Two levels down and up, with transposed convolutions (Ronneberger et al. 2015)."""

    def __init__(self) -> None:
        super().__init__()

        def twice(inputs: int, outputs: int) -> nn.Module:
            return nn.Sequential(conv_bn_relu(inputs, outputs, 3), conv_bn_relu(outputs, outputs, 3))

        self.top, self.middle, self.bottom = twice(3, 32), twice(32, 64), twice(64, 128)
        self.raise_middle = nn.ConvTranspose2d(128, 64, 2, stride=2)
        self.raise_top = nn.ConvTranspose2d(64, 32, 2, stride=2)
        self.join_middle, self.join_top = twice(128, 64), twice(64, 32)
        self.classes = nn.Conv2d(32, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        top = self.top(x)
        middle = self.middle(functional.max_pool2d(top, 2))
        bottom = self.bottom(functional.max_pool2d(middle, 2))
        middle = self.join_middle(torch.cat([self.raise_middle(bottom), middle], 1))
        return self.classes(self.join_top(torch.cat([self.raise_top(middle), top], 1)))
