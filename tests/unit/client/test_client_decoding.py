"""Decoders: the tokens of ``transformers``, with one program for all lengths, and a cache that is written in place."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
import tvm
from torch import nn

from loopwright import Client, Decoder, Lock, NotLocked, UnsupportedModel
from loopwright.codegen.errors import UnsupportedVersion
from loopwright.codegen.target import canonical_target, target_from
from loopwright.decoding.programs import decoder_programs
from loopwright.decoding.sampling import next_token
from tests.support.cases import first
from tests.unit.client.fake_service import FakeService
from tests.unit.client.known_bests import LLVM, serve


class Int8(nn.Module):
    """A linear layer whose weight has 8 bits and a scale for each output."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        scale = layer.weight.detach().abs().amax(1) / 127
        self.register_buffer("weight", (layer.weight.detach() / scale[:, None]).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight.to(x.dtype)) * self.scale


def with_int8_weights(model: Any) -> Any:
    for layer in model.model.layers:
        for part in (layer.self_attn, layer.mlp):
            for name, child in list(part.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(part, name, Int8(child))
    return model


TOKENS = 61
COMMON: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": TOKENS,
    "max_position_embeddings": 64,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
GROUPED = {**COMMON, "num_key_value_heads": 2}
OWN_SIZE = {**GROUPED, "head_dim": 12}
MODELS: dict[str, Callable[[], Any]] = {
    # A window of 7, that is shorter than the text.
    "Mistral": lambda: transformers.MistralForCausalLM(transformers.MistralConfig(sliding_window=7, **GROUPED)),
    "Llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)),
    "Qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**GROUPED)),
    "Qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**OWN_SIZE)),
    "Gemma": lambda: transformers.GemmaForCausalLM(transformers.GemmaConfig(**OWN_SIZE)),
    "Gemma2": lambda: transformers.Gemma2ForCausalLM(transformers.Gemma2Config(sliding_window=7, **OWN_SIZE)),
    "Gemma3": lambda: transformers.Gemma3ForCausalLM(transformers.Gemma3TextConfig(sliding_window=7, **OWN_SIZE)),
    "Phi3": lambda: transformers.Phi3ForCausalLM(transformers.Phi3Config(**GROUPED)),
    "GPT2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=TOKENS, n_positions=64)
    ),
    "Llama with int8 weights": lambda: with_int8_weights(
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED))
    ),
    "Llama in bfloat16": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).bfloat16(),
}
TEXT = [5, 17, 3, 59, 20, 7, 8, 9, 11, 44, 2, 31, 30, 29]
CAPACITY = 48
OTHER = "llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64"


@pytest.fixture(autouse=True)
def _nothing_is_known(service: FakeService) -> None:
    serve(service)


def made(name: str) -> Any:
    """Return a model whose tokens differ from step to step."""
    torch.manual_seed(1)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(8)
    return model


@pytest.fixture(scope="module")
def mistral() -> Any:
    return made("Mistral")


@pytest.fixture(scope="module")
def lock(mistral: Any) -> Lock:
    """The lock of the programs of `decoder`: first of that of one token, then of that of four."""
    service = FakeService()
    serve(service)
    programs = decoder_programs(mistral, max_length=CAPACITY, prompt_lengths=(4,))
    assert list(programs) == [1, 4]
    with Client(service.url, "token") as client:
        made = client.lock(*programs.values(), target=LLVM, allow_unscheduled=True)
    service.close()
    return made


@pytest.fixture(scope="module")
def decoder(mistral: Any, lock: Lock) -> Iterator[Decoder]:
    """One that is compiled with a lock of its programs, and without a service."""
    with Client("http://127.0.0.1:1") as client:
        yield client.compile_decoder(mistral, max_length=CAPACITY, prompt_lengths=(4,), lock=lock)
        assert client.last_report is not None
        assert client.last_report.agreement is not None
        assert not [each.name for each in client.last_report.functions if "write_rows" in each.name]


def expected(model: Any, prompt: list[int], count: int) -> list[int]:
    with torch.no_grad():
        ids = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False)
    tokens: list[int] = ids[0, len(prompt) :].tolist()
    return tokens


@pytest.mark.parametrize("length", [1, 3, 4, 6, 13])
def test_tokens_are_those_of_transformers(mistral: Any, decoder: Decoder, length: int) -> None:
    decoder.reset()
    tokens = decoder.generate(TEXT[:length], 20)
    assert tokens == expected(mistral, TEXT[:length], 20)
    assert len(set(tokens)) > 5
    assert decoder.position == length + 19


def test_the_cache_is_written_in_place_and_only_at_the_position(decoder: Decoder) -> None:
    decoder.reset()
    before = [(tensor.data_ptr(), tensor.numpy()) for tensor in decoder.cache]
    decoder.prefill([50, 51, 52])
    decoder.step(53)
    for (address, old), tensor in zip(before, decoder.cache, strict=True):
        assert tensor.data_ptr() == address
        assert (tensor.numpy()[:, :, 4:] == old[:, :, 4:]).all()
        assert (tensor.numpy()[:, :, :4] != old[:, :, :4]).any(axis=(1, 3)).all()


def test_the_programs_have_their_weights_in_common(mistral: Any, decoder: Decoder) -> None:
    weights = {tensor: tensor.numpy().nbytes for each in decoder.programs.values() for tensor in each.weights}
    of_model = sum(each.nbytes for each in mistral.parameters())
    assert 0.99 * of_model <= sum(weights.values()) < 1.1 * of_model  # equal ones, such as those of norms, are one


def test_a_saved_decoder_makes_the_same_tokens(decoder: Decoder, tmp_path: Path) -> None:
    decoder.reset()
    tokens = decoder.generate(TEXT[:6], 9)
    decoder.save(tmp_path / "decoder")
    code = f"""import os, sys
from loopwright import Decoder
from loopwright.codegen.host.threads import usable_cores
for shared in (True, False):
    loaded = Decoder.load({str(tmp_path / "decoder")!r}, shared=shared)
    assert loaded.max_length == {CAPACITY}
    assert loaded.generate({TEXT[:6]}, 9) == {tokens}
    mapped = [line.split()[0].split("-") for line in open("/proc/self/maps") if "weights.bin" in line]
    places = [range(*(int(end, 16) for end in each)) for each in mapped]
    assert all(any(w.data_ptr() in place for place in places) == shared for w in loaded.programs[1].weights)
assert "transformers" not in sys.modules
assert os.environ["TVM_NUM_THREADS"] == str(usable_cores())"""
    others = {name: each for name, each in os.environ.items() if name not in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}
    subprocess.run([sys.executable, "-c", code], check=True, env=others)
    with pytest.raises(FileExistsError, match="is not empty"):
        decoder.save(tmp_path / "decoder")
    manifest = tmp_path / "decoder" / "decoder.json"
    manifest.write_text(manifest.read_text().replace(tvm.__version__, "0.1"))
    with pytest.raises(UnsupportedVersion, match="was written with TVM"):
        Decoder.load(tmp_path / "decoder")
    with pytest.raises(FileNotFoundError):
        Decoder.load(tmp_path)


class Nibbles(nn.Module):
    """A linear layer whose weight has 4 bits, two in a byte, and a scale for each 16 along the depth."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        blocks = layer.weight.detach().reshape(layer.out_features, -1, 16)
        scale = blocks.abs().amax(-1, keepdim=True) / 7
        numbers = ((blocks / scale).round() + 8).to(torch.uint8).reshape(layer.out_features, -1)
        self.register_buffer("weight", numbers[:, ::2] | (numbers[:, 1::2] << 4))
        self.register_buffer("scale", scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).to(x.dtype) - 8
        values = numbers.reshape(self.scale.shape[0], -1, 16) * self.scale
        return nn.functional.linear(x, values.reshape(self.scale.shape[0], -1))


@pytest.mark.whole
def test_rows_of_weights_of_few_bits_are_rounded_where_that_is_asked_for(service: FakeService) -> None:
    model: Any = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**GROUPED, "num_hidden_layers": 1}))
    model.eval()
    for part in (model.model.layers[0].self_attn, model.model.layers[0].mlp):
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Linear):
                setattr(part, name, Nibbles(child))
    with torch.no_grad():
        logits = model(torch.tensor([TEXT[:5]])).logits[0, -1].numpy()
    with Client(service.url, "token") as client:
        decoder = client.compile_decoder(model, max_length=16, prompt_lengths=(4,), target=LLVM, int8_activations=True)
        assert client.last_report is not None
        assert client.last_report.agreement is not None
    found = np.abs(decoder.prefill(TEXT[:5]) - logits).max() / np.abs(logits).max()
    assert 1e-4 < found < 0.1
    assert 1e-4 < client.last_report.agreement.max_rel_error < 0.1


def test_tokens_can_be_taken_back(decoder: Decoder) -> None:
    decoder.reset()
    decoder.prefill(TEXT[:6])
    logits = decoder.step(9)
    decoder.step(33)
    decoder.position = 6
    np.testing.assert_array_equal(decoder.step(9), logits)
    with pytest.raises(ValueError, match="from 0 to 7"):
        decoder.position = 8


def test_a_full_cache_takes_nothing_more(mistral: Any, decoder: Decoder) -> None:
    decoder.reset()
    tokens = decoder.generate(TEXT, 1000)
    assert decoder.position == CAPACITY
    assert tokens == expected(mistral, TEXT, CAPACITY - len(TEXT) + 1)
    with pytest.raises(ValueError, match="room for 48 tokens and contains 48"):
        decoder.step(1)
    with pytest.raises(ValueError, match="so that 2 more have none"):
        decoder.prefill([1, 2])
    decoder.position = CAPACITY - 2  # behind it, no program of four tokens has room
    assert decoder.prefill([1, 2]).shape == (TOKENS,)
    with pytest.raises(ValueError, match="at least one"):
        decoder.prefill([])


def test_it_ends_behind_a_token_to_stop_at_and_repeats_by_seed(mistral: Any, decoder: Decoder) -> None:
    wanted = expected(mistral, TEXT[:5], 12)
    decoder.reset()
    assert decoder.generate(TEXT[:5], 12, stop=(wanted[3],)) == wanted[: wanted.index(wanted[3]) + 1]
    drawn = []
    for seed in (1, 1, 2):
        decoder.reset()
        drawn.append(decoder.generate(TEXT[:5], 12, temperature=2.0, seed=seed))
    assert drawn[0] == drawn[1] != drawn[2]
    decoder.reset()
    assert list(itertools.islice(decoder.stream(TEXT[:5], 12), 3)) == wanted[:3]
    for temperature, top_p in ((-1.0, 1.0), (0.0, 0.0), (1.0, 1.5)):
        with pytest.raises(ValueError, match="should be"):
            decoder.generate([1], temperature=temperature, top_p=top_p)


@pytest.mark.whole
@pytest.mark.parametrize("name", list(MODELS)[1:])
def test_tokens_of_other_models_are_those_of_transformers(client: Client, name: str) -> None:
    model = made(name)
    decoder = client.compile_decoder(model, max_length=32, prompt_lengths=(5,), target=LLVM)
    for length in (1, 7):
        decoder.reset()
        tokens, wanted = decoder.generate(TEXT[:length], 20), expected(model, TEXT[:length], 20)
        # In bfloat16, two tokens may be equally likely.
        same = 5 if "bfloat16" in name else 20
        assert tokens[:same] == wanted[:same]


def test_the_model_itself_stays_as_it_is(mistral: Any) -> None:
    attention = mistral.config._attn_implementation
    decoder_programs(mistral, max_length=8, prompt_lengths=())
    assert mistral.config._attn_implementation == attention != "loopwright"


class NoLanguageModel(nn.Module):
    def forward(self, x: Any) -> Any:
        return x


def test_a_short_cache_has_a_short_length_of_prompts(mistral: Any) -> None:
    assert list(decoder_programs(mistral, max_length=8)) == [1, 8]
    assert list(decoder_programs(mistral, max_length=100)) == [1, 64]


def test_another_machine_is_refused_before_the_model_is_traced(
    client: Client, mistral: Any, lock: Lock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopwright.compiler.program_of", lambda *_: pytest.fail("traced"))
    elsewhere = replace(lock, target=json.loads(canonical_target(target_from(OTHER))))
    for options in ({"target": OTHER}, {"lock": elsewhere}):
        with pytest.raises(UnsupportedModel, match="CPU of this machine"):
            client.compile_decoder(mistral, max_length=8, prompt_lengths=(), **options)


def test_a_decoder_whose_programs_are_not_in_the_lock_is_refused(client: Client, mistral: Any, lock: Lock) -> None:
    options: dict[str, Any] = {"max_length": CAPACITY, "prompt_lengths": ()}
    without = replace(lock, functions=tuple(each for each in lock.functions if each.name != "seen_keys"))
    assert len(without.functions) < len(lock.functions)
    with pytest.raises(NotLocked, match="the lock has no best of seen_keys:"):
        client.compile_decoder(mistral, **options, lock=without)
    with pytest.raises(ValueError, match="the lock is for"):
        client.compile_decoder(mistral, **options, lock=lock, target=OTHER)


def test_what_cannot_be_decoded_is_refused(mistral: Any) -> None:
    with pytest.raises(UnsupportedModel, match="NoLanguageModel is no causal language model"):
        decoder_programs(NoLanguageModel().eval(), max_length=64)
    with pytest.raises(UnsupportedModel, match="training mode"):
        decoder_programs(NoLanguageModel(), max_length=64)
    for lengths in ((0,), (9,), (-1, 4)):
        with pytest.raises(ValueError, match="from 1 to max_length=8"):
            decoder_programs(mistral, max_length=8, prompt_lengths=lengths)


@pytest.mark.parametrize(("top_p", "possible"), first(2, [(0.5, {2}), (0.7, {2, 0}), (1.0, {0, 1, 2, 3})]))
def test_tokens_are_drawn_from_the_nucleus(top_p: float, possible: set[int]) -> None:
    logits = np.log([0.3, 0.05, 0.6, 0.05])
    generator = np.random.default_rng(0)
    drawn = [next_token(logits, 1.0, top_p, generator) for _ in range(300)]
    assert set(drawn) == possible
    assert next_token(logits, 0.0, top_p, generator) == 2


def test_frequencies_are_those_of_the_temperature() -> None:
    logits, generator = np.log([0.2, 0.8]), np.random.default_rng(0)
    drawn = [next_token(logits, 0.5, 1.0, generator) for _ in range(4000)]
    assert abs(np.mean(drawn) - 0.64 / 0.68) < 0.02
