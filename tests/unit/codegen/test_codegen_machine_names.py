"""Names of machines for people, from what device classes of any age store."""

from __future__ import annotations

import re

import pytest

from loopwright.codegen import worker_labels
from loopwright.codegen.machine.names import machine_name, processor_label


@pytest.mark.parametrize(
    ("model", "target", "name"),
    [
        ("AuthenticAMD znver3 1ddebed0", '{"kind": "llvm", "num-cores": 2}', "AMD Zen 3, 2 cores"),
        ("GenuineIntel icelake-server 9e8fdfa2", '{"num-cores": 1}', "Intel Ice Lake, 1 core"),
        ("AuthenticAMD x86-64-v3 a07c", "{}", "AMD x86-64-v3"),
        ("0x41 neoverse-n1 00112233", '{"num-cores": 64}', "Arm neoverse-n1, 64 cores"),
        ("CentaurHauls x86-64-v4 00112233", '{"num-cores": 8}', "CentaurHauls x86-64-v4, 8 cores"),
        ("Raspberry Pi 4 Model B 0a1b2c3d", '{"num-cores": 4}', "Raspberry Pi 4 Model B, 4 cores"),
        ("NVIDIA GeForce RTX 4090", '{"kind": "cuda", "arch": "sm_89"}', "NVIDIA GeForce RTX 4090"),
        ("imported: machine unknown", '{"kind": "llvm"}', "imported: machine unknown"),
        ("0a1b2c3d", "{}", "0a1b2c3d"),
    ],
)
def test_a_device_class_has_a_name_for_people(model: str, target: str, name: str) -> None:
    assert machine_name(model, target) == name


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("AMD EPYC 7763 64-Core Processor", "AMD-EPYC-7763-64-Core-Processor"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Intel-Xeon-Platinum-8481C-CPU"),
        ("x" * 62 + " y", "x" * 62),
        ("", ""),
        ("(R)  @", ""),
    ],
)
def test_the_name_of_a_processor_is_a_label_that_jobs_can_require(name: str, label: str) -> None:
    assert processor_label(name) == label
    assert not label or re.fullmatch(worker_labels.WORD, label)
