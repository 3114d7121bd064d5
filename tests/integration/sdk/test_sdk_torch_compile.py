"""``torch.compile`` with the service behind it: what is compiled, what is left to PyTorch, and what changes later."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from tvm.relax.frontend.torch import relax_dynamo

import loopwright.torch
from benchmarks.models.architectures import ARCHITECTURES, Architecture
from loopwright import Client, NotLocked
from loopwright.frontends.torch.values import tensors
from loopwright.torch import saying, variant
from tests.support.service_client import JOB_SECONDS

SOME = ("GPT-2", *(pytest.param(name, marks=pytest.mark.whole) for name in ("BERT", "ViT", "T5 encoder")))


@pytest.fixture(autouse=True)
def _afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No graph of another test; and what was compiled is used, however fast PyTorch is."""
    monkeypatch.setattr(variant, "_is_better", lambda now, was: True)
    monkeypatch.setattr(saying, "_said", set())
    torch._dynamo.reset()
    loopwright.torch._graphs.clear()
    yield
    torch._dynamo.reset()


def compiled(model: nn.Module, client: Client, tune: str = "wait", **options: Any) -> Any:
    return torch.compile(
        model, backend="loopwright", options={"client": client, "tune": tune, "max_trials": 1, **options}
    )


def assert_equal(value: Any, expected: Any) -> None:
    values, others = tensors(value), tensors(expected)
    assert list(values) == list(others)
    for name, right in others.items():
        torch.testing.assert_close(values[name], right, rtol=0, atol=1e-5 * max(1.0, float(right.abs().max())))


class Layer(nn.Module):
    def __init__(self, width: int = 24) -> None:
        super().__init__()
        torch.manual_seed(width)
        self.linear = nn.Linear(width, 12)
        self.register_buffer("factor", torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        return torch.relu(self.linear(x)) * self.factor, x.shape[0]


@pytest.mark.whole
@pytest.mark.parametrize("name", SOME)
def test_architectures_compute_the_same(client: Client, name: str) -> None:
    made: Architecture = next(one for one in ARCHITECTURES if one.name == name)
    model = made.model()
    with torch.no_grad():
        expected = model(**made.inputs())
        callable_ = compiled(model, client)
        for _ in range(3):
            assert_equal(callable_(**made.inputs()), expected)
    outcomes = loopwright.torch.outcomes()
    assert outcomes
    assert {outcome.state for outcome in outcomes} == {"compiled"}, outcomes


@pytest.mark.whole
def test_a_new_shape_is_a_program_of_its_own(client: Client) -> None:
    model = Layer()
    callable_ = compiled(model, client)
    with torch.no_grad():
        for rows in (2, 5, 7, 2, 5):
            x = torch.randn(rows, 24)
            for _ in range(2):
                assert_equal(callable_(x), model(x))
                assert callable_(x)[1] == rows
    outcomes = loopwright.torch.outcomes()
    assert {outcome.shapes[0][0] for outcome in outcomes} == {2, 5, 7}
    assert {outcome.state for outcome in outcomes} == {"compiled"}


def test_weights_that_change_are_seen(client: Client) -> None:
    model, x = Layer(), torch.randn(3, 24)
    callable_ = compiled(model, client)
    with torch.no_grad():
        for change in (
            lambda: None,
            lambda: model.linear.weight.mul_(2),
            lambda: model.load_state_dict(Layer(24).state_dict()),
        ):
            change()
            for _ in range(3):
                assert_equal(callable_(x), model(x))
    assert [outcome.state for outcome in loopwright.torch.outcomes()] == ["compiled"]


@pytest.mark.whole
def test_inputs_in_any_layout_and_place(client: Client) -> None:
    model = Layer()
    callable_ = compiled(model, client)
    whole = torch.randn(50, 24)
    with torch.no_grad():
        for x in (whole[:4], whole[1:5], torch.randn(24, 4).t(), whole[::13]):
            for _ in range(2):
                assert_equal(callable_(x), model(x))
    with torch.inference_mode():
        assert_equal(callable_(whole[:4]), model(whole[:4]))


def test_a_job_in_the_background_is_used_when_it_has_ended(client: Client) -> None:
    model, x = Layer(width=26), torch.randn(4, 26)
    callable_ = compiled(model, client, tune="background")
    with torch.no_grad():
        expected = model(x)
        assert_equal(callable_(x), expected)
        [outcome] = loopwright.torch.outcomes()
        assert outcome.state == "tuning"
        assert outcome.job_id is not None
        client.job(outcome.job_id).wait(progress=False, timeout=JOB_SECONDS)
        until = time.monotonic() + JOB_SECONDS
        while loopwright.torch.outcomes()[0].state != "compiled" and time.monotonic() < until:
            assert_equal(callable_(x), expected)
            time.sleep(0.05)
        assert_equal(callable_(x), expected)
        assert loopwright.torch.outcomes()[0].state == "compiled"

        lock = loopwright.torch.lock(model, client=client)
        with pytest.raises(ValueError, match="no graph of the model ran"):
            loopwright.torch.lock(Layer(width=26), client=client)
        torch._dynamo.reset()
        with Client("http://127.0.0.1:9", timeout=1) as nobody:
            pinned: Any = {"client": nobody, "lock": lock}
            callable_ = torch.compile(model, backend="loopwright", options=pinned)
            for _ in range(2):
                assert_equal(callable_(x), expected)
            assert [outcome.state for outcome in loopwright.torch.outcomes()][-1] == "compiled"
            with pytest.raises(NotLocked, match="no best of"):
                callable_(torch.randn(5, 26))


@pytest.mark.whole
def test_nothing_is_submitted_if_it_should_not_and_refresh_finds_what_came_later(client: Client) -> None:
    model, other, x = Layer(width=28), Layer(width=30), torch.randn(4, 28)
    callable_ = compiled(model, client, tune="never")
    before = len(list(client.jobs()))
    with torch.no_grad():
        expected = model(x)
        for _ in range(2):
            assert_equal(callable_(x), expected)
        [outcome] = loopwright.torch.outcomes()
        assert (outcome.state, outcome.reason) == ("pytorch", "none of its functions is tuned")
        assert len(list(client.jobs())) == before
        client.submit(model, example_inputs=x, max_trials=1).wait(progress=False, timeout=JOB_SECONDS)
        assert loopwright.torch.refresh(other) == 0
        assert loopwright.torch.refresh(model) == loopwright.torch.refresh() == 1
        for _ in range(2):
            assert_equal(callable_(x), expected)
    assert loopwright.torch.outcomes()[0].state == "compiled"


class Noise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, 0.5, training=True) * 2


class Exotic(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x) + 1


@pytest.mark.parametrize(
    ("model", "said"),
    [(Exotic(), "bessel_j0"), (Layer(), "gradients are recorded")],
    ids=["operator", "gradients"],
)
def test_what_it_cannot_take_is_left_to_pytorch_with_one_warning(client: Client, model: nn.Module, said: str) -> None:
    callable_ = compiled(model, client)
    x = torch.rand(4, 24)
    with warnings.catch_warnings(record=True) as caught, torch.set_grad_enabled(said.startswith("gradients")):
        warnings.simplefilter("always")
        for _ in range(3):
            assert_equal(callable_(x.clone()), model(x.clone()))
    complaints = [str(each.message) for each in caught if "left to PyTorch" in str(each.message)]
    assert len(complaints) == 1
    assert said in complaints[0]


class Rows(nn.Module):
    """Keeps rows at places of a cache, counts them, and returns the count itself among the results."""

    def forward(self, x: torch.Tensor, place: torch.Tensor, cache: torch.Tensor, count: torch.Tensor) -> Any:
        count.add_(1)
        cache.index_copy_(1, place, x * 2)
        return cache.sum(1), count


@pytest.mark.parametrize("inference", [False, True])
def test_inputs_that_a_graph_changes_are_changed_once_in_each_call(client: Client, inference: bool) -> None:
    model = Rows()
    callable_ = compiled(model, client)
    with torch.inference_mode(inference), torch.no_grad():
        ours, theirs = ([torch.zeros(2, 7, 5), torch.tensor(0)] for _ in range(2))
        address = ours[0].data_ptr()
        for call, place in enumerate((3, 0, 6, 3, 1)):
            x, where = torch.randn(2, 1, 5), torch.tensor([place])
            found, count = callable_(x, where, *ours)
            assert_equal(found, model(x, where, *theirs)[0])
            assert count is ours[1]
            assert count.item() == call + 1
            assert ours[0].data_ptr() == address
            assert_equal(ours[0], theirs[0])
    assert [outcome.state for outcome in loopwright.torch.outcomes()] == ["compiled"]


def tiny(kind: str) -> Any:
    """Return a language model of one layer with random weights."""
    torch.manual_seed(0)
    config = {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 61, "max_position_embeddings": 64, "bos_token_id": None,
        "eos_token_id": None, "pad_token_id": 0,
    }  # fmt: skip
    return getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**config)).eval()


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["Llama", "Qwen2"])
def test_tokens_with_a_static_cache_take_two_programs(client: Client, kind: str) -> None:
    model, ids = tiny(kind), torch.tensor([[5, 17, 3, 59, 20]])
    expected = model.generate(ids, max_new_tokens=9, do_sample=False)
    model.generation_config.cache_implementation = "static"
    model.forward = compiled(model.forward, client)
    assert model.generate(ids, max_new_tokens=9, do_sample=False).equal(expected)
    _, step = loopwright.torch.outcomes()  # the program of the prompt has its first call behind it
    assert step.state == "compiled"
    for _ in range(2):
        assert model.generate(ids, max_new_tokens=9, do_sample=False).equal(expected)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:a graph is left to PyTorch:RuntimeWarning")
def test_a_cache_that_grows_has_few_programs(client: Client) -> None:
    model, ids = tiny("Llama"), torch.tensor([[5, 17, 3]])
    expected = model.generate(ids, max_new_tokens=12, do_sample=False)
    model.forward = compiled(model.forward, client, tune="never")
    assert model.generate(ids, max_new_tokens=12, do_sample=False).equal(expected)
    assert len(loopwright.torch.outcomes()) <= 6


@pytest.mark.filterwarnings("ignore:a graph is left to PyTorch:RuntimeWarning")
def test_random_numbers_are_left_to_pytorch(client: Client) -> None:
    callable_, x = compiled(Noise(), client), torch.ones(4, 24)
    with torch.no_grad():
        drawn = [callable_(x) for _ in range(4)]
    assert len({tuple(each.flatten().tolist()) for each in drawn}) == 4
    assert [outcome.state for outcome in loopwright.torch.outcomes()] == ["pytorch"]


@pytest.mark.whole
def test_graphs_around_a_break_are_taken_each(client: Client) -> None:
    class Broken(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Layer(), nn.Linear(12, 24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden, _ = self.first(x)
            torch._dynamo.graph_break()
            return torch.tanh(self.second(hidden))

    model, x = Broken(), torch.randn(4, 24)
    callable_ = compiled(model, client)
    with torch.no_grad():
        for _ in range(3):
            assert_equal(callable_(x), model(x))
    assert [outcome.state for outcome in loopwright.torch.outcomes()] == ["compiled"] * 2


@pytest.mark.whole
def test_a_service_that_is_away_is_no_error() -> None:
    model, x = Layer(), torch.randn(4, 24)
    with Client("http://127.0.0.1:9", timeout=1) as nobody, torch.no_grad():
        callable_ = compiled(model, nobody)
        with pytest.warns(RuntimeWarning, match="could not reach Loopwright"):
            assert_equal(callable_(x), model(x))
        assert_equal(callable_(x), model(x))


REFUSED = "tune is 'later'; it may be|unknown options: trials|leave out lock, or the rest"


@pytest.mark.parametrize("options", [{"tune": "later"}, {"trials": 3}, {"lock": "no.lock", "max_trials": 3}])
def test_unknown_options_are_named(client: Client, options: dict[str, Any]) -> None:
    callable_ = torch.compile(Layer(), backend="loopwright", options={"client": client, **options})
    with pytest.raises(Exception, match=REFUSED), torch.no_grad():
        callable_(torch.randn(4, 24))


@pytest.mark.whole
def test_the_backend_is_known_without_importing_it() -> None:
    program = "import sys, torch; assert 'loopwright' not in sys.modules; print(torch.compiler.list_backends())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "'loopwright'" in done.stdout


def test_tvms_own_backend_takes_the_pipeline(client: Client) -> None:
    model, x = Layer(), torch.randn(3, 24)
    callable_ = torch.compile(model, backend=relax_dynamo(client.relax_pipeline()))
    with torch.no_grad():
        assert_equal(callable_(x), model(x))
