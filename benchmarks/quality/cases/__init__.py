"""The cases of the benchmark, in the order of the report."""

from __future__ import annotations

from functools import partial

from torch import nn

from benchmarks.quality.cases import layers, models
from benchmarks.quality.cases.case import Case, Kind, Precision
from benchmarks.quality.cases.layers import Attention, BatchedProduct, Product, conv1d, conv_bn_relu


def _linear(inputs: int, outputs: int, *activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, outputs), *activation)


_OPERATORS = (
    Case("product-512", "product", partial(Product, 512, 512), ((512, 512),), with_stock=True),
    Case("product-prime", "product", partial(Product, 127, 251), ((509, 127),)),
    Case("product-skinny", "product", partial(Product, 4096, 1024), ((8, 4096),)),
    Case("linear-gelu", "linear", partial(_linear, 768, 3072, nn.GELU()), ((64, 768),), with_stock=True),
    Case("linear-relu-odd", "linear", partial(_linear, 515, 1031, nn.ReLU()), ((77, 515),)),
    Case("batched-product", "batched product", BatchedProduct, ((12, 128, 64), (12, 64, 128))),
    Case("batched-product-odd", "batched product", BatchedProduct, ((7, 61, 97), (7, 97, 53))),
    Case("gemv", "GEMV", partial(Product, 4096, 4096), ((1, 4096),)),
    Case("gemv-odd", "GEMV", partial(_linear, 2047, 1000), ((1, 2047),)),
    Case("softmax", "softmax", partial(nn.Softmax, -1), ((384, 384),), with_stock=True),
    Case("softmax-odd", "softmax", partial(nn.Softmax, -1), ((100, 1001),)),
    Case("gelu", "gelu", nn.GELU, ((64, 3072),)),
    Case("gelu-odd", "gelu", nn.GELU, ((77, 1031),)),
    Case("layer-norm", "layer norm", partial(nn.LayerNorm, 768), ((128, 768),), with_stock=True),
    Case("layer-norm-odd", "layer norm", partial(nn.LayerNorm, 1023), ((500, 1023),)),
    Case("rms-norm", "RMS norm", partial(layers.RMSNorm, 4096), ((64, 4096),)),
    Case("sum-rows", "reduction", partial(layers.Sum, -1), ((1024, 1024),)),
    Case("sum-columns-odd", "reduction", partial(layers.Sum, 0), ((1000, 777),)),
    Case("conv3x3", "convolution", partial(conv_bn_relu, 64, 64, 3), ((1, 64, 56, 56),), with_stock=True),
    Case("conv3x3-stride-odd", "convolution", partial(conv_bn_relu, 37, 74, 3, stride=2), ((1, 37, 29, 29),)),
    Case("conv1x1", "convolution", partial(conv_bn_relu, 256, 64, 1), ((1, 256, 56, 56),)),
    Case("conv7x7-stride", "convolution", partial(conv_bn_relu, 3, 64, 7, stride=2), ((1, 3, 224, 224),)),
    Case("depthwise3x3", "depthwise", partial(conv_bn_relu, 96, 96, 3, groups=96), ((1, 96, 56, 56),)),
    Case("depthwise5x5-stride", "depthwise", partial(conv_bn_relu, 72, 72, 5, stride=2, groups=72), ((1, 72, 56, 56),)),
    Case(
        "transposed4x4",
        "transposed convolution",
        partial(nn.ConvTranspose2d, 64, 32, 4, stride=2, padding=1),
        ((1, 64, 28, 28),),
    ),
    Case(
        "transposed2x2",
        "transposed convolution",
        partial(nn.ConvTranspose2d, 128, 64, 2, stride=2),
        ((1, 128, 28, 28),),
    ),
    Case("max-pool3x3", "pooling", partial(nn.MaxPool2d, 3, stride=2, padding=1), ((1, 64, 112, 112),)),
    Case("average-pool", "pooling", partial(nn.AdaptiveAvgPool2d, 1), ((1, 1280, 7, 7),)),
    Case("product-thin", "product", partial(Product, 80, 1280), ((1280, 80),)),
    Case("hardswish", "hardswish", nn.Hardswish, ((1, 72, 40, 40),)),
    Case("log-softmax-long", "log-softmax", partial(nn.LogSoftmax, -1), ((48, 9001),)),
    Case("softmax-long", "softmax", partial(nn.Softmax, -1), ((12, 30522),)),
    Case("conv1d-gelu", "convolution of lines", partial(conv1d, 96, 192, 5, nn.GELU()), ((1, 96, 170),)),
    Case("conv1d-stride", "convolution of lines", partial(conv1d, 64, 160, 3, nn.ReLU(), stride=2), ((1, 64, 251),)),
    Case("grouped3x3-4", "grouped convolution", partial(conv_bn_relu, 96, 96, 3, groups=4), ((1, 96, 30, 30),)),
    Case("grouped3x3-16", "grouped convolution", partial(conv_bn_relu, 256, 256, 3, groups=16), ((1, 256, 17, 17),)),
    Case("conv3d", "convolution of volumes", partial(nn.Conv3d, 12, 24, 3, padding=1), ((1, 12, 10, 24, 24),)),
    Case(
        "transposed3x3",
        "transposed convolution",
        partial(nn.ConvTranspose2d, 48, 24, 3, stride=2, padding=1, output_padding=1),
        ((1, 48, 26, 26),),
    ),
    Case("residual-layer-norm", "sum and norm", lambda: layers.Residual(nn.LayerNorm(640)), ((50, 640),) * 2),
    Case("residual-rms-norm", "sum and norm", lambda: layers.Residual(layers.RMSNorm(896)), ((24, 896),) * 2),
    Case("lstm", "recurrent layer", partial(layers.Recurrent, "LSTM", 48, 96), ((1, 24, 48),)),
    Case("gru", "recurrent layer", partial(layers.Recurrent, "GRU", 40, 80), ((1, 30, 40),)),
    Case("attention", "attention", partial(Attention, written_out=True), ((1, 12, 128, 64),) * 3),
    Case("attention-256", "attention", partial(Attention, written_out=False), ((1, 8, 256, 64),) * 3),
    *(
        Case(
            f"decode-{heads}-{groups}-{rows}",
            "decode attention",
            layers.DecodeAttention,
            ((1, heads, 1, width), *((1, groups, rows, width),) * 2),
        )
        for heads, groups, rows, width in ((16, 4, 384, 64), (16, 4, 2048, 64), (32, 8, 1024, 128), (12, 12, 512, 64))
    ),
)

_LOW_PRECISION = (
    *(
        Case(f"bf16-{n}", "bf16 product", partial(Product, n, n), ((n, n),), Kind.LOW, Precision.BF16)
        for n in (512, 1024, 2048)
    ),
    *(
        Case(f"int8-{n}", "int8 product", partial(layers.Int8Product, n, n), ((n, n),), Kind.LOW, Precision.INT8)
        for n in (512, 1024)
    ),
    *(
        Case(
            f"int8-{rows}x{k}x{n}",
            "int8 product",
            partial(layers.Int8Product, k, n),
            ((rows, k),),
            Kind.LOW,
            Precision.INT8,
        )
        for rows, k, n in (
            (1, 4096, 4096),
            (8, 4096, 1024),
            (16, 1024, 4096),
            (64, 768, 3072),
            (256, 3072, 768),
            (1024, 256, 256),
        )
    ),
    *(
        Case(
            f"int8-conv{kernel}x{kernel}-{pixels}-{inputs}-{outputs}",
            "int8 convolution",
            partial(layers.QuantisedConvolution, inputs, outputs, kernel),
            ((1, inputs, pixels, pixels),),
            Kind.LOW,
            Precision.QDQ,
        )
        for kernel, pixels, inputs, outputs in ((3, 56, 64, 64), (1, 28, 128, 512), (3, 14, 256, 256), (1, 56, 256, 64))
    ),
    *(
        Case(
            f"int4-{rows}x{k}x{n}",
            "int4 weights, int8 rows",
            partial(layers.BlockProduct, k, n),
            ((rows, k),),
            Kind.LOW,
            Precision.INT4_INT8,
        )
        for k, n in ((4096, 4096), (4096, 11008))
        for rows in (1, 4, 16, 64)
    ),
    *(
        Case(
            f"int4-f32-{rows}x4096x4096",
            "int4 weights",
            partial(layers.BlockProduct, 4096, 4096),
            ((rows, 4096),),
            Kind.LOW,
            Precision.INT4,
        )
        for rows in (1, 16)
    ),
    Case("f16-row", "one row", partial(Product, 4096, 4096), ((1, 4096),), Kind.LOW, Precision.F16),
    Case("bf16-row", "one row", partial(Product, 4096, 4096), ((1, 4096),), Kind.LOW, Precision.BF16),
    Case("int8-row", "one row", partial(layers.Int8Weights, 4096, 4096), ((1, 4096),), Kind.LOW),
)

_IMAGE = ((1, 3, 224, 224),)
_MODELS = (
    Case("resnet18", "ResNet-18", models.resnet18, _IMAGE, Kind.MODEL),
    Case("mobilenet-v2", "MobileNetV2, half its blocks", models.mobilenet_v2, _IMAGE, Kind.MODEL),
    Case("bert-64", "BERT-base, 2 layers, 64 tokens", models.bert, ((1, 64, 768),), Kind.MODEL),
    Case("bert-256", "BERT-base, 2 layers, 256 tokens", models.bert, ((1, 256, 768),), Kind.MODEL),
    Case("mlp", "MLP, batch of 32", models.mlp, ((32, 784),), Kind.MODEL),
    Case("unet", "U-Net of two levels", models.UNet, ((1, 3, 128, 128),), Kind.MODEL),
)
_QUANTISED_MODELS = (
    Case(
        "mobilenet-v2-qdq", "MobileNetV2, half its blocks, QDQ", models.mobilenet_v2, _IMAGE, Kind.MODEL,
        Precision.QDQ_MODEL,
    ),
    Case("bert-64-qdq", "BERT-base, 2 layers, QDQ", models.bert, ((1, 64, 768),), Kind.MODEL, Precision.QDQ_MODEL),
    Case(
        "bert-64-dynamic", "BERT-base, 2 layers, dynamic int8", models.bert, ((1, 64, 768),), Kind.MODEL,
        Precision.DYNAMIC,
    ),
)  # fmt: skip

CASES = {case.name: case for case in (*_OPERATORS, *_LOW_PRECISION, *_MODELS, *_QUANTISED_MODELS)}
"""Every case by its name."""
