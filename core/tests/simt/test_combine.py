"""Instruction combining in text: what is fused, what must be left alone, and addresses that take literals in."""

from __future__ import annotations

from tilefw.machine.text import parse_functions, print_inst
from tilefw.simt.select.combine import Addresses, Combiner, Fusion, combine

TABLE = Combiner(
    {
        "add": [Fusion("add", "mul", "fma"), Fusion("add", "wide", "widefma", at=(0,))],
        "times": [Fusion("times", "extend", "wide", single=False, both=True)],
        "less": [
            Fusion("less", "mul", "fma", at=(0,), negated=(2,), negation="neg"),
            Fusion("less", "mul", "fma", at=(1,), negated=(0, 1), negation="neg"),
        ],
        "scale": [Fusion("scale", "extend", "wide", single=False, fits=lambda inner, others: isinstance(others[0], int))],
    },
    Addresses("sum", ("load", "store"), 128),
    opposite=lambda literal: -literal if isinstance(literal, int) else None,
)


def combined(*lines: str) -> list[str]:
    """The instructions after combining, dead ones included."""
    text = "\n".join(['func @f target "t"', "  regs r: 0-9", "  regs p: 10", *(s if s.endswith(":") else f"  {s}" for s in lines)])
    (function,) = parse_functions(text + "\n", "test")
    combine(function, TABLE)
    return [print_inst(inst).strip() for inst in function.insts()]


def test_a_product_read_once_goes_into_the_sum_from_either_side():
    for total in ("%4 = add %3, %2", "%4 = add %2, %3"):
        lines = combined("entry:", "%0 = in", "%1 = in", "%2 = in", "%3 = mul %0, %1", total)
        assert lines[4] == "%4 = fma %0, %1, %2"


def test_a_promise_of_exact_integers_holds_for_what_is_fused_if_both_made_it():
    """A product that was a number of its own may have wrapped: nothing is known of the sum then."""
    for outer, inner, fused in (
        ("no_wrap", "no_wrap", " {no_wrap}"), ("no_wrap", "no_wrap=proven", " {no_wrap}"), ("no_wrap", "", " {no_wrap=lost}"),
        ("no_wrap=proven", "no_wrap", " {no_wrap=proven}"), ("", "no_wrap", ""),
    ):
        product, total = (f" {{{said}}}" if said else "" for said in (inner, outer))
        lines = combined("entry:", "%0 = in", "%1 = in", "%2 = in", f"%3 = mul %0, %1{product}", f"%4 = add %3, %2{total}")
        assert lines[4] == f"%4 = fma %0, %1, %2{fused}"


def test_what_only_decides_leaves_the_promise_of_the_others():
    row = Fusion("choose", "compare", "choose_if", at=(0,), single=False, condition=True)
    text = "%3 = compare %0, %1\n  %4 = choose %3, %1, %2 {no_wrap}"
    (function,) = parse_functions(f'func @f target "t"\n  regs r: 0-9\nentry:\n  {text}\n', "test")
    combine(function, Combiner({"choose": [row]}))
    assert print_inst(list(function.insts())[1]).strip() == "%4 = choose_if %0, %1, %1, %2 {no_wrap}"


def test_a_product_that_others_read_is_not_computed_twice():
    lines = ["%3 = mul %0, %1", "%4 = add %3, %2", "%5 = add %3, %0"]
    assert combined("entry:", "%0 = in", "%1 = in", "%2 = in", *lines)[3:] == lines


def test_a_product_is_not_moved_into_a_loop():
    lines = ["%3 = mul %0, %1", "%4 = add %3, %2", "jump {targets=loop}"]
    assert combined("entry:", "%0 = in", "%1 = in", "%2 = in", lines[0], "loop:", *lines[1:])[3:] == lines


def test_operands_that_are_written_between_stay_where_they_were_read():
    lines = ["%0 = in", "%1 = in", "%2 = in", "%3 = mul %0, %1", "%0 = in", "%4 = add %3, %2"]
    assert combined("entry:", *lines) == lines
    later = [*lines[:4], lines[5], lines[4]]
    assert combined("entry:", *later)[4] == "%4 = fma %0, %1, %2", "nobody wrote it yet"


def test_loop_variables_are_not_read_in_another_block():
    lines = ["%0 = in", "%2 = extend %0", "%0 = in", "jump {targets=next}", "%3 = scale %2, 4"]
    assert combined("entry:", *lines[:4], "next:", lines[4]) == lines


def test_a_result_kept_under_a_predicate_is_no_value():
    lines = ["%3 = mul %0, %1", "@%10 %3 = load %2, 0", "%4 = add %3, %2"]
    assert combined("entry:", *lines) == lines


def test_a_product_of_one_rewrite_meets_the_next():
    lines = combined("entry:", "%0 = in", "%1 = in", "%2 = extend %0", "%3 = scale %2, 4", "%4 = add %3, %1")
    assert lines[3:] == ["%3 = wide %0, 4", "%4 = widefma %0, 4, %1"]


def test_the_condition_of_a_fusion_decides():
    lines = ["%0 = in", "%1 = in", "%2 = extend %0", "%3 = scale %2, %1"]
    assert combined("entry:", *lines) == lines


def test_literals_of_an_address_go_into_the_access_within_its_limit():
    assert combined("entry:", "%0 = in", "%1 = sum %0, 100", "%2 = load %1, 27")[2] == "%2 = load %0, 127"
    assert combined("entry:", "%0 = in", "%1 = sum %0, 100", "%2 = load %1, 28")[2] == "%2 = load %1, 28"
    assert combined("entry:", "%0 = in", "%1 = sum %0, -8", "store %1, 0, %0")[2] == "store %0, -8, %0"


def test_what_is_subtracted_goes_in_with_the_other_sign_that_is_made_once():
    lines = combined(
        "entry:", "%0 = in", "%1 = in", "%3 = mul %0, %1", "%4 = less %3, %0", "%5 = mul %1, %1", "%6 = less %5, %0"
    )
    assert lines[3:] == ["%11 = neg %0", "%4 = fma %0, %1, %11", "%5 = mul %1, %1", "%6 = fma %1, %1, %11"]


def test_another_sign_is_made_anew_after_a_write():
    lines = ["%0 = in", "%1 = in", "%3 = mul %1, %1", "%4 = less %3, %0", "%0 = in", "%5 = mul %1, %1", "%6 = less %5, %0"]
    found = combined("entry:", *lines)
    assert found[3:5] == ["%11 = neg %0", "%4 = fma %1, %1, %11"]
    assert found[7:] == ["%12 = neg %0", "%6 = fma %1, %1, %12"]


def test_a_product_that_is_subtracted_gives_its_sign_to_a_literal_factor():
    assert combined("entry:", "%0 = in", "%1 = mul %0, 3", "%2 = less %0, %1")[2] == "%2 = fma %0, -3, %0"
    lines = combined("entry:", "%0 = in", "%1 = in", "%2 = mul %0, %1", "%3 = less %0, %2")
    assert lines[3:] == ["%11 = neg %1", "%3 = fma %0, %11, %0"]


def test_a_product_of_two_extended_factors_takes_both():
    makers = ["%0 = in", "%1 = in", "%2 = extend %0", "%3 = extend %1"]
    assert combined("entry:", *makers, "%4 = times %2, %3")[4] == "%4 = wide %0, %1"
    assert combined("entry:", *makers, "%4 = times %2, %0")[4] == "%4 = times %2, %0"
