"""The programs of a decoder with the best schedules, built. Needs TVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.target import Target

from loopwright.applying import apply as applying
from loopwright.applying.agreement import agreement, runs_here
from loopwright.applying.lookup import LookedUp
from loopwright.applying.report import AppliedFunction, ApplyReport
from loopwright.codegen.weights.shared_weights import weights_apart
from loopwright.decoding import memory
from loopwright.decoding.decoder import Decoder
from loopwright.decoding.files import DecoderProgram
from loopwright.decoding.memory import Form
from loopwright.errors import UnsupportedModel
from loopwright.frontends.program import Program


def check_target(target: Target) -> None:
    """Raise UnsupportedModel unless the target is this machine's CPU."""
    if not runs_here(target):
        raise UnsupportedModel(
            f"a decoder runs on the CPU of this machine, and the target is {target}; give target='llvm', or export "
            "each of loopwright.decoder_programs"
        )


def compiled(
    programs: Mapping[int, Program], models: Sequence[LookedUp], *, verify: bool
) -> tuple[Decoder, ApplyReport]:
    """Build the programs of a decoder, which write into its cache in place.

    Args:
        programs: by the number of tokens in a call.
        models: what is known of each of them.
        verify: whether to compare each program with the model.

    Returns:
        The decoder, and the report on the functions of all programs, with the largest error as agreement.

    Raises:
        UnsupportedModel: the target is not this machine's CPU.
        WrongAnswer: with ``verify``, a program does not compute what the model computes.
    """
    check_target(models[0].target)
    mods, functions, notes = [], list[AppliedFunction](), dict[str, None]()
    for length, model in zip(programs, models, strict=True):
        applied, report = applying.apply(model)
        first = 2 if length == 1 else 3  # behind the tokens, the position, and which token's logits to return
        cache = applied["main"].params[first:]
        mods.append(applied)
        functions += [function.of(f"{length} token{'s' if length > 1 else ''}") for function in report.functions]
        notes |= dict.fromkeys(report.notes)
    built, agreements = {}, []
    apart = weights_apart(mods)
    used = list(dict.fromkeys(tensor for _, weights in apart for tensor in weights))
    moved = dict(zip(used, memory.copied(used), strict=True))
    for (length, program), model, (mod, constants) in zip(programs.items(), models, apart, strict=True):
        weights = [moved[tensor] for tensor in constants]
        built[length] = DecoderProgram(applying.build(mod, model.target), weights)
        if verify:
            agreements.append(agreement(program.reference, built[length].executable, mod, model.target, weights))
    # A masked key counts nothing, but its value may be multiplied by 0.
    empty_cache = memory.zeros([Form(tuple(map(int, each.ty.shape)), str(each.ty.dtype)) for each in cache])
    worst = max(filter(None, agreements), key=lambda each: each.max_rel_error, default=None)
    return Decoder(built, empty_cache), ApplyReport(tuple(functions), agreement=worst, notes=tuple(notes))
