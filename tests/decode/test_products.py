"""Products with packed weights equal plain ones, for any number of rows, columns and threads, and keep rows apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from constrained.decode.packing import is_packable, pack
from constrained.decode.product_kernels import multiply
from constrained.decode.quantized import Int8Linear
from constrained.decode.shares import await_all, claim, counters, finish, start_run
from constrained.decode.team import Team

TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def bits(tensor: Tensor) -> Any:
    return tensor.view(torch.uint16 if tensor.dtype == torch.bfloat16 else torch.int32).numpy()


def product(layers: list[Any], rows: Tensor, num_out: int, *, is_gated: bool = False, num_threads: int = 1) -> Tensor:
    packed = pack([layers], rows.dtype, is_gated=is_gated)
    out = torch.full((len(rows), num_out), float("nan"), dtype=rows.dtype)
    team = Team(num_threads)
    parts = counters(1)
    start_run(parts, 7)
    team.run(multiply, bits(rows), packed.words[0], packed.scales[0], packed.bias[0], is_gated, bits(out), parts, 7, 0)
    team.close()
    return out


def linear(num_in: int, num_out: int, dtype: torch.dtype, *, bias: bool, int8: bool) -> Any:
    layer = nn.Linear(num_in, num_out, bias=bias, dtype=dtype).requires_grad_(False)
    return Int8Linear.of(layer) if int8 else layer


def plain(layer: Any, rows: Tensor) -> Tensor:
    """What a layer computes, in float32 with weights written out."""
    weight = layer.weight.float()
    if isinstance(layer, Int8Linear):
        weight = weight * layer.scales.float()[:, None]
    return nn.functional.linear(rows.float(), weight, None if layer.bias is None else layer.bias.float())


def distance(got: Tensor, expected: Tensor) -> float:
    return float((got.float() - expected.float()).norm() / expected.float().norm())


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("num_rows", [1, 3, 13, 31, 200])
def test_layers_side_by_side(dtype: torch.dtype, int8: bool, num_rows: int) -> None:
    torch.manual_seed(num_rows)
    layers = [linear(46, n, dtype, bias=n == 20, int8=int8) for n in (64, 20, 7)]
    rows = torch.randn(num_rows, 46, dtype=dtype)
    expected = torch.cat([plain(layer, rows) for layer in layers], dim=1)
    assert distance(product(layers, rows, 91, num_threads=2), expected) < TOLERANCES[dtype]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("num_out", [16, 32, 50])
def test_a_gate_and_what_it_gates(dtype: torch.dtype, int8: bool, num_out: int) -> None:
    torch.manual_seed(num_out)
    gate, up = (linear(46, num_out, dtype, bias=True, int8=int8) for _ in range(2))
    rows = 3 * torch.randn(21, 46, dtype=dtype)
    rows[0] *= 100  # gates far out on both sides
    got = product([gate, up], rows, num_out, is_gated=True, num_threads=3)
    assert distance(got, nn.functional.silu(plain(gate, rows)) * plain(up, rows)) < TOLERANCES[dtype]


@pytest.mark.parametrize("int8", [False, True])
def test_a_row_does_not_depend_on_the_rows_beside_it(int8: bool) -> None:
    torch.manual_seed(0)
    layers = [linear(96, 100, torch.bfloat16, bias=True, int8=int8)]
    rows = torch.randn(40, 96, dtype=torch.bfloat16)
    together = product(layers, rows, 100)
    for i in (0, 11, 12, 23, 24, 39):
        assert torch.equal(product(layers, rows[i : i + 1], 100)[0], together[i])


def test_only_what_the_kernels_take_is_packable() -> None:
    assert is_packable(nn.Linear(4, 3), torch.float32)
    assert is_packable(Int8Linear.of(nn.Linear(4, 3)), torch.bfloat16)
    assert not is_packable(nn.Linear(5, 3), torch.float32)
    assert not is_packable(nn.Linear(4, 3), torch.bfloat16)
    assert not is_packable(nn.Linear(4, 3, dtype=torch.float16), torch.float16)
    assert not is_packable(nn.Identity(), torch.float32)


def test_each_part_goes_to_one_thread_and_nobody_waits_for_a_thread_that_is_late() -> None:
    parts = counters(2)
    start_run(parts, 4)
    assert [claim(parts, 4, 1, 3) for _ in range(4)] == [0, 1, 2, 3]
    assert claim(parts, 4, 0, 3) == 0  # phases do not touch
    for _ in range(3):
        finish(parts, 1)
    await_all(parts, 4, 1, 3)


def test_a_thread_that_is_late_for_its_run_takes_nothing_and_leaves() -> None:
    parts = counters(1)
    start_run(parts, 5)
    assert claim(parts, 4, 0, 3) == 3
    await_all(parts, 4, 0, 3)
    assert claim(parts, 5, 0, 3) == 0


def test_many_runs_in_a_row_are_each_complete() -> None:
    """Helpers of one run meet the next one: nothing is missed or done twice."""
    torch.manual_seed(0)
    layer, rows = linear(64, 640, torch.float32, bias=False, int8=False), torch.randn(2, 64)
    packed, parts, team = pack([[layer]], torch.float32), counters(1), Team(3)
    expected = product([layer], rows, 640)
    for run in range(1, 400):
        out = torch.full((2, 640), float("nan"))
        start_run(parts, run)
        team.run(multiply, bits(rows), packed.words[0], packed.scales[0], packed.bias[0], False, bits(out), parts, run, 0)
        assert torch.equal(out, expected)
    team.close()
