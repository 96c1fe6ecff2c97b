"""Verdicts against flags, and which times are compared with which."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

from rich.console import Console

from benchmarks.cases import Case, Document
from benchmarks.report import Results, judge, show, summary


def case(name: str, *flags: bool) -> Case:
    return Case(name, "{}", [Document([1], flag) for flag in flags], Counter())


def answer(ttfm_us: int, *documents: tuple[bool, list[int]]) -> dict[str, Any]:
    """Each document takes half as long when it is walked once more."""
    told = [
        {"accepted": ok, "read": len(us), "error": "", "tbm_ns": [n * 1000 for n in us], "again_ns": [n * 500 for n in us]}
        for ok, us in documents
    ]
    return {"ttfm_ns": ttfm_us * 1000, "documents": told}


class TestJudge:
    def test_right(self) -> None:
        judged = judge(case("a", True, False), answer(1, (True, [1]), (False, [])))
        assert judged.passes

    def test_wrong_in_both_ways(self) -> None:
        judged = judge(case("a", True, False, True), answer(1, (False, []), (True, [1]), (True, [1])))
        assert (judged.wrongly_rejected, judged.wrongly_accepted) == ([0], [1])
        assert not judged.passes

    def test_refused_or_ended_is_not_wrong_and_does_not_pass(self) -> None:
        for told in ({"refused": "why", "detail": ""}, {"ended": "over the limit"}):
            judged = judge(case("a", True), told)
            assert not judged.wrongly_accepted + judged.wrongly_rejected
            assert not judged.passes


def results() -> Results:
    """Two engines; both compile `both`, one of its three valid documents is accepted by one engine alone."""
    results = Results(["ours", "llguidance"])
    flags = case("both", True, True, True, False)
    results.add(
        flags,
        {
            "ours": answer(10, (True, [1, 3]), (True, [100]), (True, []), (True, [7])),
            "llguidance": answer(40, (True, [4, 4]), (False, [900]), (True, []), (False, [])),
        },
    )
    results.add(
        case("one", True), {"ours": answer(1000, (True, [50])), "llguidance": {"refused": 'no "x" at 12', "detail": ""}}
    )
    results.add(case("none", True), {"ours": {"refused": "no 3 of 4", "detail": ""}, "llguidance": {"ended": "over 60 s"}})
    return results


class TestSummary:
    def test_verdicts(self) -> None:
        engines = summary(results())["engines"]
        names = ("compiled", "wrongly_accepted", "wrongly_rejected", "passing", "wrong_schemas")
        assert [engines["ours"][name] for name in names] == [2, 1, 0, 1, ["both"]]
        assert [engines["llguidance"][name] for name in names] == [1, 0, 1, 0, ["both"]]
        assert engines["ours"]["passing_share"] == 0.3333

    def test_reasons_are_counted_without_their_numbers(self) -> None:
        engines = summary(results())["engines"]
        assert engines["ours"]["refused"] == {"no N of N": 1}
        assert engines["llguidance"]["refused"] == {'no "x" at N': 1}
        assert engines["llguidance"]["ended"] == {"over N s": 1}

    def test_times_of_all_that_an_engine_compiles(self) -> None:
        ours = summary(results())["engines"]["ours"]
        assert ours["ttfm_us"] == {
            "n": 2,
            "avg": 505.0,
            "p50": 505.0,
            "p90": 901.0,
            "p99": 990.1,
            "p99.9": 999.01,
            "max": 1000.0,
        }
        assert (ours["tbm_us"]["n"], ours["tbm_us"]["max"]) == (5, 100.0)

    def test_common_times_are_of_the_same_tokens(self) -> None:
        common = summary(results())["common"]
        assert (common["schemas"], common["documents"]) == (1, 2)
        ours, base = common["engines"]["ours"], common["engines"]["llguidance"]
        assert ours["tbm_us"]["n"] == base["tbm_us"]["n"] == 2
        assert (ours["tbm_us"]["avg"], base["tbm_us"]["avg"]) == (2.0, 4.0)
        assert (ours["tbm_ratio"]["avg"], ours["ttfm_ratio"]["p50"]) == (0.5, 0.25)
        assert ours["ttfm_ratio_by_schema"]["p50"] == 0.25

    def test_what_is_set_apart_is_counted(self) -> None:
        every = Results(["ours"])
        for _ in range(2):
            every.add(Case("a", "{}", [], Counter({"why": 3})), {"ours": answer(1)})
        assert summary(every)["set_apart"] == {"why": 6}

    def test_without_the_base_there_is_no_ratio(self) -> None:
        alone = Results(["ours"])
        alone.add(case("a", True), {"ours": answer(1, (True, [1]))})
        assert "ttfm_ratio" not in summary(alone)["common"]["engines"]["ours"]

    def test_an_engine_that_compiles_nothing_has_no_times(self) -> None:
        nothing = Results(["ours", "llguidance"])
        nothing.add(case("a", True), {"ours": {"refused": "x", "detail": ""}, "llguidance": answer(1, (True, [1]))})
        data = summary(nothing)
        assert data["engines"]["ours"]["ttfm_us"] == {}
        assert printed(data)


def printed(data: dict[str, Any]) -> str:
    out = io.StringIO()
    show(data, Console(file=out, width=160))
    return out.getvalue()


def test_the_tables_say_what_the_data_says() -> None:
    text = printed(summary(results()))
    assert "3 schemas, 6 instances (5 valid)" in text
    assert "ours / llguidance" in text
    assert 'llguidance refused: 1 x no "x" at N' in text
    assert "TBM on the 2 valid documents that all accept" in text
