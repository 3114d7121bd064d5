"""A causal language model that generates tokens: one program for all lengths, and one for prompts.

.venv/bin/python -m examples.decoder
"""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import loopwright

PROMPT, CAPACITY, LENGTHS = [3, 14, 15, 92, 65], 64, (8,)


def main(client: loopwright.Client, trials: int = 256) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=1000, eos_token_id=None,
    )  # fmt: skip
    model: torch.nn.Module = LlamaForCausalLM(config)
    model.eval()

    programs = loopwright.decoder_programs(model, max_length=CAPACITY, prompt_lengths=LENGTHS)
    for program in programs.values():
        client.submit(program, max_trials=trials).wait()

    decoder = client.compile_decoder(model, max_length=CAPACITY, prompt_lengths=LENGTHS)
    tokens = decoder.generate(PROMPT, max_new_tokens=20)
    expected = model.generate(torch.tensor([PROMPT]), max_new_tokens=20, do_sample=False)[0, len(PROMPT) :]
    assert tokens == expected.tolist()
    print("tokens", tokens)
    print(client.last_report)


if __name__ == "__main__":
    main(loopwright.Client())
