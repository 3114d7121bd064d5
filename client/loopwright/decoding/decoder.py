"""A compiled causal language model that generates tokens. Needs TVM."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm import relax

from loopwright.decoding import files
from loopwright.decoding.files import DecoderProgram
from loopwright.decoding.sampling import next_token
from loopwright.extras import require_tvm


class Decoder:
    """A causal language model with its cache: what `Client.compile_decoder` returns.

    The cache has a fixed capacity, and the number of tokens in it is data, so that one program makes all steps. The
    programs write into the cache in place. Two threads must not use a decoder at once.
    """

    def __init__(self, programs: Mapping[int, DecoderProgram], cache: Sequence[Any]) -> None:
        """Take the programs, and make an empty cache.

        Args:
            programs: a program for each number of tokens in a call, one among them. Each takes the tokens, the
                position, the index of the token whose logits it returns, unless it takes one token, the cache, and its
                weights. It returns the logits, and the cache's tensors, into which it has written.
            cache: the keys of all layers, then their values: ``tvm.runtime.Tensor`` of ``[1, heads, capacity, size]``.
        """
        self.programs = dict(programs)
        """The programs by the number of tokens in a call. They have their weights in common."""
        self.max_length = int(cache[0].shape[2])
        """The number of tokens that the cache has room for."""
        self.cache = list(cache)
        """The keys of all layers, then their values, of which `position` rows are valid."""
        self._calls = {
            length: relax.VirtualMachine(each.executable, tvm.cpu())["main"] for length, each in programs.items()
        }
        self._position = 0

    @staticmethod
    def load(folder: str | os.PathLike[str], *, shared: bool = False) -> Decoder:
        """Return a decoder that `save` wrote, with an empty cache. Needs TVM, and neither PyTorch nor the service.

        The programs run on one thread for each core, unless the environment says otherwise.

        Args:
            folder: the folder.
            shared: whether the weights stay in the pages of their file, which several processes share. By default, a
                process has a copy of its own in huge pages, from which tokens come faster.

        Raises:
            FileNotFoundError: it contains no decoder.
            UnsupportedVersion: another version of TVM wrote it.
        """
        require_tvm()
        return Decoder(*files.read(Path(folder).absolute(), shared=shared))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the programs and the weights to a folder, for this kind of machine. A C++ compiler is needed.

        Args:
            folder: the folder to write. It must be empty or not exist.

        Raises:
            FileExistsError: the folder is not empty.
        """
        files.write(Path(folder), self.programs, self.cache)

    @property
    def position(self) -> int:
        """The number of tokens in the cache. Set it lower to take tokens back."""
        return self._position

    @position.setter
    def position(self, position: int) -> None:
        if not 0 <= position <= self._position:
            raise ValueError(f"position={position} should be from 0 to {self._position}, the number of tokens so far")
        self._position = position

    def prefill(self, ids: Sequence[int]) -> Any:
        """Take the tokens of a prompt behind those in the cache.

        Args:
            ids: the tokens.

        Returns:
            The logits of the last token, a NumPy array ``[vocabulary]``.

        Raises:
            ValueError: there is no token, or the cache has no room for all of them.
        """
        tokens = [int(each) for each in np.asarray(ids).reshape(-1)]
        if not tokens:
            raise ValueError("a prompt should have at least one token")
        self._check_room(len(tokens))
        logits = None
        while tokens:
            length = self._length(len(tokens))
            logits = self._call(tokens[:length], length)
            tokens = tokens[length:]
        return logits

    def step(self, token: int) -> Any:
        """Take one token behind those in the cache.

        Args:
            token: the token.

        Returns:
            Its logits, a NumPy array ``[vocabulary]``.

        Raises:
            ValueError: the cache is full.
        """
        self._check_room(1)
        return self._call([int(token)], 1)

    def stream(
        self,
        ids: Sequence[int],
        max_new_tokens: int = 128,
        *,
        temperature: float = 0.0,
        top_p: float = 1.0,
        stop: Collection[int] = (),
        seed: int = 0,
    ) -> Iterator[int]:
        """Yield the tokens that follow a prompt, as they are made. The prompt is put behind what is in the cache.

        Args:
            ids: the tokens of the prompt.
            max_new_tokens: how many tokens to make at most. It also ends when the cache is full.
            temperature: 0 for the likeliest token of each step; else tokens are drawn.
            top_p: tokens are drawn from the likeliest ones whose probabilities add up to this.
            stop: tokens behind which it ends, such as the end of a sequence. They are part of the result.
            seed: seed of the random numbers.

        Raises:
            ValueError: the prompt is empty or has no room in the cache, or a number is out of range.
        """
        if temperature < 0 or not 0 < top_p <= 1:
            raise ValueError(f"temperature={temperature} should be at least 0, and top_p={top_p} from above 0 to 1")
        generator = np.random.default_rng(seed)
        logits = self.prefill(ids)
        for count in range(max_new_tokens):
            token = next_token(logits, temperature, top_p, generator)
            yield token
            if token in stop or count + 1 == max_new_tokens or self._position == self.max_length:
                return
            logits = self.step(token)

    def generate(
        self,
        ids: Sequence[int],
        max_new_tokens: int = 128,
        *,
        temperature: float = 0.0,
        top_p: float = 1.0,
        stop: Collection[int] = (),
        seed: int = 0,
    ) -> list[int]:
        """Return the tokens that follow a prompt: all that `stream` yields.

        Args:
            ids: as for `stream`.
            max_new_tokens: as for `stream`.
            temperature: as for `stream`.
            top_p: as for `stream`.
            stop: as for `stream`.
            seed: as for `stream`.

        Raises:
            ValueError: as `stream`.
        """
        options: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "stop": stop, "seed": seed}
        return list(self.stream(ids, max_new_tokens, **options))

    def reset(self) -> None:
        """Forget all tokens."""
        self._position = 0

    def _check_room(self, count: int) -> None:
        if self._position + count > self.max_length:
            raise ValueError(
                f"the cache has room for {self.max_length} tokens and contains {self._position}, so that {count} more "
                "have none; call reset(), or compile with a larger max_length"
            )

    def _length(self, count: int) -> int:
        """Return the length of the program for the next of ``count`` tokens.

        It is the shortest that takes all of them and has room in the cache, or else the longest that can be filled.
        """
        room = self.max_length - self._position
        fitting = [length for length in self._calls if count <= length <= room]
        return min(fitting) if fitting else max(length for length in self._calls if length <= count)

    def _call(self, tokens: Sequence[int], length: int) -> Any:
        ids = np.zeros((1, length), "int64")
        ids[0, : len(tokens)] = tokens
        arguments = [ids, np.asarray(self._position, "int64")]
        if length > 1:
            arguments.append(np.asarray([len(tokens) - 1], "int64"))
        weights = self.programs[length].weights
        logits, *self.cache = self._calls[length](*map(tvm.runtime.tensor, arguments), *self.cache, *weights)
        self._position += len(tokens)
        return logits.numpy().reshape(-1)
