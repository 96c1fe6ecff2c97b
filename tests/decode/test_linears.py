"""Packed linear layers compute what plain ones do, for any number of rows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from constrained.decode.linears import PackedLinear, pack_linears
from constrained.decode.runner import ModelRunner
from constrained.decode.selftest import check_model
from constrained.errors import UnsupportedModelError
from tests.decode.mocks import random_model, tiny_config


@pytest.mark.parametrize("bias", [True, False])
def test_any_number_of_rows(bias: bool) -> None:
    layer = nn.Linear(48, 70, bias=bias, dtype=torch.bfloat16).requires_grad_(False)
    rows = [torch.randn(1, n, 48, dtype=torch.bfloat16) for n in (0, 1, 7, 64)]
    expected = [layer(x) for x in rows]
    assert pack_linears(nn.Sequential(layer)) == 1
    assert isinstance(layer.forward, PackedLinear)
    for x, y in zip(rows, expected, strict=True):
        assert layer(x).shape == y.shape
        assert torch.allclose(layer(x), y, rtol=2e-2, atol=2e-2)


def test_what_the_kernels_do_not_take_stays_as_it_is() -> None:
    layer = nn.Linear(8, 8, dtype=torch.float16)
    assert pack_linears(nn.Sequential(layer)) == 0
    assert not isinstance(layer.forward, PackedLinear)


def test_a_packed_model_passes_the_self_test_and_again() -> None:
    model = random_model(tiny_config(), torch.bfloat16)
    for _ in range(2):
        check_model(ModelRunner(model, "tiny", 1 << 20, 1024), pack_linears)
    assert pack_linears(model) == 7 * 2 + 1


def test_a_change_that_breaks_the_model_is_refused() -> None:
    runner = ModelRunner(random_model(tiny_config()), "tiny", 1 << 20, 1024)
    with pytest.raises(UnsupportedModelError, match="logits differ"):
        check_model(runner, lambda model: model.lm_head.weight.mul_(torch.linspace(0.5, 2, 48)))
