"""Every regularizer against CVXPY, NumPy formulas and the definition of the prox."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxgt.records import record
from proxgt.regularizers import (
    L1,
    L2,
    AffineSet,
    Blocks,
    Box,
    Custom,
    ElasticNet,
    GroupL1,
    Halfspace,
    L1Ball,
    L2Ball,
    LinfBall,
    NonNegative,
    NuclearBall,
    NuclearNorm,
    Regularizer,
    Simplex,
    TotalVariation,
    Zero,
    as_regularizer,
)

P = 6
SHAPE = (2, 3)
WEIGHTS = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 0.3])
LO = np.array([-1.0, -np.inf, 0.0, -2.0, 0.5, -np.inf])
HI = np.array([1.0, 0.3, np.inf, -1.0, 0.5, np.inf])
NORMAL = np.array([1.0, -2.0, 0.5, 0.0, 1.0, 3.0])
ROWS = np.array([[1.0, 2, 0, -1, 0, 1], [0, 1, 1, 0, -1, 0], [1, 3, 1, -1, -1, 1]])  # rank 2
POINT = np.array([0.5, -1.0, 0.2, 0.0, 1.5, 2.0])
LISTS = [[0, 3], [1, 2, 5], [4]]
LABELS = [7, 9, 9, 7, 11, 9]
GROUP_WEIGHTS = np.array([1.0, 0.5, 2.0])


@dataclasses.dataclass(frozen=True)
class Case:
    """A regularizer, and h once more: for CVXPY, in NumPy, and by points of its domain.

    make: s -> the regularizer with all its numbers scaled by s.
    penalty: variable -> (expression, constraints), at s = 1.
    value: x -> h(x) for x in the domain, at s = 1.
    member: any x -> a point of the domain, at s = 1.
    """

    make: Callable[[float], Any]
    penalty: Callable[[Any], tuple[Any, list]]
    value: Callable[[np.ndarray], float] = lambda x: 0.0
    member: Callable[[np.ndarray], np.ndarray] = lambda x: x
    indicator: bool = False
    compact: bool = False

    @property
    def h(self) -> Any:
        return self.make(1.0)


def penalty(make, expression, value):
    return Case(make, lambda x: (expression(x), []), value)


def convex_set(make, constraints, member, compact=False):
    return Case(make, lambda x: (0, constraints(x)), member=member, indicator=True, compact=compact)


def matrix(x):
    return x.reshape(SHAPE) if isinstance(x, np.ndarray) else cp.reshape(x, SHAPE, order="C")


def group_norms(x, norm):
    return [norm(x[group]) for group in LISTS]


def shrink_into(norm, radius):
    return lambda x: x * min(1.0, radius / max(norm(x), 1e-300))


def nuclear(x):
    return np.linalg.svd(matrix(x), compute_uv=False).sum()


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def into_halfspace(x):
    return x - max(0.0, NORMAL @ x - 0.7) * NORMAL / (NORMAL @ NORMAL)


def into_affine_set(x):
    return POINT + x - np.linalg.lstsq(ROWS, ROWS @ x, rcond=None)[0]


CASES = {
    "Zero": penalty(lambda s: Zero(), lambda x: 0, lambda x: 0.0),
    "L1": penalty(
        lambda s: L1(0.4 * s), lambda x: 0.4 * cp.norm1(x), lambda x: 0.4 * np.abs(x).sum()
    ),
    "L1 weighted": penalty(
        lambda s: L1(s * WEIGHTS), lambda x: WEIGHTS @ cp.abs(x), lambda x: WEIGHTS @ np.abs(x)
    ),
    "L2": penalty(
        lambda s: L2(0.7 * s), lambda x: 0.35 * cp.sum_squares(x), lambda x: 0.35 * x @ x
    ),
    "L2 weighted": penalty(
        lambda s: L2(s * WEIGHTS),
        lambda x: WEIGHTS @ cp.square(x) / 2,
        lambda x: WEIGHTS @ x**2 / 2,
    ),
    "ElasticNet": penalty(
        lambda s: ElasticNet(0.4 * s, 0.6 * s),
        lambda x: 0.4 * cp.norm1(x) + 0.3 * cp.sum_squares(x),
        lambda x: 0.4 * np.abs(x).sum() + 0.3 * (x**2).sum(),
    ),
    "GroupL1 lists": penalty(
        lambda s: GroupL1(0.8 * s, LISTS),
        lambda x: 0.8 * sum(group_norms(x, cp.norm2)),
        lambda x: 0.8 * sum(group_norms(x, np.linalg.norm)),
    ),
    "GroupL1 labels, weighted": penalty(
        lambda s: GroupL1(0.8 * s, LABELS, weights=GROUP_WEIGHTS * s),
        lambda x: 0.8 * (GROUP_WEIGHTS @ cp.hstack(group_norms(x, cp.norm2))),
        lambda x: 0.8 * (GROUP_WEIGHTS @ group_norms(x, np.linalg.norm)),
    ),
    "NuclearNorm": penalty(
        lambda s: NuclearNorm(0.5 * s, SHAPE),
        lambda x: 0.5 * cp.normNuc(matrix(x)),
        lambda x: 0.5 * nuclear(x),
    ),
    "TotalVariation": penalty(
        lambda s: TotalVariation(0.5 * s),
        lambda x: 0.5 * cp.tv(x),
        lambda x: 0.5 * sum(abs(x[i + 1] - x[i]) for i in range(P - 1)),
    ),
    "NonNegative": convex_set(lambda s: NonNegative(), lambda x: [x >= 0], np.abs),
    "Box": convex_set(
        lambda s: Box(-0.5 * s, 0.8 * s),
        lambda x: [x >= -0.5, x <= 0.8],
        lambda x: np.minimum(np.maximum(x, -0.5), 0.8),
        compact=True,
    ),
    "Box unbounded": convex_set(
        lambda s: Box(s * LO, s * HI),
        lambda x: [x[LO > -9] >= LO[LO > -9], x[HI < 9] <= HI[HI < 9]],
        lambda x: np.minimum(np.maximum(x, LO), HI),
    ),
    "L1Ball": convex_set(
        lambda s: L1Ball(1.3 * s),
        lambda x: [cp.norm1(x) <= 1.3],
        shrink_into(lambda x: np.abs(x).sum(), 1.3),
        compact=True,
    ),
    "L2Ball": convex_set(
        lambda s: L2Ball(1.3 * s),
        lambda x: [cp.norm2(x) <= 1.3],
        shrink_into(np.linalg.norm, 1.3),
        compact=True,
    ),
    "LinfBall": convex_set(
        lambda s: LinfBall(0.6 * s),
        lambda x: [cp.norm_inf(x) <= 0.6],
        shrink_into(lambda x: np.abs(x).max(), 0.6),
        compact=True,
    ),
    "Simplex": convex_set(
        lambda s: Simplex(2.0 * s),
        lambda x: [x >= 0, cp.sum(x) == 2.0],
        lambda x: 2.0 * softmax(x),
        compact=True,
    ),
    "Halfspace": convex_set(
        lambda s: Halfspace(NORMAL, 0.7 * s), lambda x: [NORMAL @ x <= 0.7], into_halfspace
    ),
    "AffineSet": convex_set(
        lambda s: AffineSet(ROWS, s * (ROWS @ POINT)),
        lambda x: [ROWS[:2] @ x == ROWS[:2] @ POINT],
        into_affine_set,
    ),
    "NuclearBall": convex_set(
        lambda s: NuclearBall(1.1 * s, SHAPE),
        lambda x: [cp.normNuc(matrix(x)) <= 1.1],
        shrink_into(nuclear, 1.1),
        compact=True,
    ),
}
SETS = {name: case for name, case in CASES.items() if case.indicator}
COMPACT = {name: case for name, case in CASES.items() if case.compact}
ELEMENTWISE = ("Zero", "L1", "L2", "ElasticNet", "NonNegative", "Box", "LinfBall")


def over(cases):
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


jit_prox = jax.jit(lambda h, v, step: h.prox(v, step))
jit_value = jax.jit(lambda h, x: h.value(x))


def prox64(h, v, step):
    with jax.enable_x64(True):
        u = jit_prox(h, np.asarray(v, np.float64), step)
        assert u.dtype == jnp.float64
        return np.asarray(u)


def value64(h, x):
    with jax.enable_x64(True):
        return float(jit_value(h, np.asarray(x, np.float64)))


def draw(seed, *shape, spread=1.5):
    return np.random.default_rng(seed).normal(scale=spread, size=shape)


signals = hnp.arrays(np.float64, P, elements=st.floats(-50, 50, width=32))
steps = st.floats(1 / 64, 16, width=32)
examples = settings(max_examples=30, deadline=None)


# value and prox -----------------------------------------------------------------------


@over(CASES)
@pytest.mark.parametrize("step", [0.1, 1.7])
def test_prox_solves_its_problem_as_cvxpy_does(case, step):
    v = draw(1, P)
    u = cp.Variable(P)
    expression, constraints = case.penalty(u)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(u - v) / 2 + step * expression), constraints)
    problem.solve("CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    np.testing.assert_allclose(prox64(case.h, v, step), u.value, atol=3e-6)


@over(CASES)
def test_value_is_the_formula(case):
    for seed in range(3):
        x = case.member(draw(seed, P))
        np.testing.assert_allclose(value64(case.h, x), case.value(x), rtol=1e-12)


@over(CASES)
@examples
@given(v=signals, other=signals, step=steps)
def test_prox_satisfies_its_variational_inequality(case, v, other, step):
    """<v - u, z - u> <= step (h(z) - h(u)) for all z in dom h, which no other u satisfies."""
    u = prox64(case.h, v, step)
    rounding = 1e-11 * (1 + np.abs(v).max() + np.abs(other).max()) ** 2 * (1 + step)
    for z in (case.member(other), case.member(v), case.member(u + other / 1e3)):
        right = step * (case.value(z) - case.value(u))
        assert (v - u) @ (z - u) <= right + rounding


@over(CASES)
@examples
@given(v=signals, w=signals, step=steps)
def test_prox_is_firmly_non_expansive(case, v, w, step):
    gap = prox64(case.h, v, step) - prox64(case.h, w, step)
    rounding = 1e-11 * (1 + np.abs(v).max() + np.abs(w).max()) ** 2
    assert gap @ gap <= gap @ (v - w) + rounding


@over(SETS)
@examples
@given(v=signals)
def test_projection_is_feasible_and_leaves_members_alone(case, v):
    assert value64(case.h, prox64(case.h, v, 1.0)) == 0
    x = case.member(v)
    np.testing.assert_allclose(prox64(case.h, x, 1.0), x, atol=1e-12 * (1 + np.abs(v).max()))


@pytest.mark.parametrize("h", [L1Ball(3.0), L2Ball(3.0), NuclearBall(9.0, SHAPE)])
def test_a_point_inside_a_ball_stays_bit_for_bit(h):
    v = draw(0, P).astype(np.float32)
    v *= np.float32(2.7) / np.abs(v).sum(dtype=np.float32)
    np.testing.assert_array_equal(jit_prox(h, v, 1.0), v)


# jit, vmap, dtypes -----------------------------------------------------------------------


@over(CASES)
def test_vmap_equals_a_loop(case):
    rows, sizes = draw(2, 5, P), np.linspace(0.1, 2, 5)

    @jax.jit
    def vmapped(h, rows, sizes):
        together = jax.vmap(h.prox, in_axes=(0, None))(rows, 0.6)
        return together, jax.vmap(h.prox)(rows, sizes), jax.vmap(h.value)(together)

    with jax.enable_x64(True):
        together, each_step, values = vmapped(case.h, rows, sizes)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(together[i], prox64(case.h, row, 0.6), atol=1e-13)
        np.testing.assert_allclose(each_step[i], prox64(case.h, row, sizes[i]), atol=1e-13)
        np.testing.assert_allclose(values[i], value64(case.h, together[i]), atol=1e-13)


@over(CASES)
def test_float32_is_near_float64(case):
    v = draw(3, P).astype(np.float32)
    u, exact = jit_prox(case.h, v, 0.6), prox64(case.h, v, 0.6)
    np.testing.assert_allclose(u, exact, atol=2e-6)
    np.testing.assert_allclose(jit_value(case.h, u), value64(case.h, exact), atol=1e-5)


@over(CASES)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("x64", [False, True])
def test_shape_and_dtype_are_kept(case, dtype, x64):
    """Also under x64, and with a step and numbers in float64."""
    with jax.enable_x64(x64):
        v, step = jnp.zeros(P, dtype), jnp.asarray(0.6)
        assert jax.eval_shape(jit_prox, case.h, v, step) == jax.ShapeDtypeStruct((P,), dtype)
        assert jax.eval_shape(jit_value, case.h, v) == jax.ShapeDtypeStruct((), dtype)


@over(CASES)
def test_new_numbers_do_not_recompile(case):
    traces = []

    @jax.jit
    def prox(h, v, step):
        traces.append(h)
        return h.prox(v, step)

    v = draw(4, P) + NORMAL  # outside every set
    first, second = prox(case.make(1.0), v, 0.6), prox(case.make(1.5), v, 0.6)
    assert len(traces) == 1
    assert jax.tree.leaves(case.h) == [] or not np.allclose(first, second)


@over({name: CASES[name] for name in ELEMENTWISE})
def test_elementwise_ones_take_any_shape(case):
    v = draw(5, 2, 3)
    flat = prox64(case.h, v.ravel(), 0.6)
    np.testing.assert_array_equal(prox64(case.h, v, 0.6), flat.reshape(2, 3))
    np.testing.assert_allclose(value64(case.h, flat.reshape(2, 3)), value64(case.h, flat))


@over(CASES)
def test_not_a_number_comes_out_as_such(case):
    """A diverged run must be seen to diverge, and no inner loop may hang on it."""
    assert np.isnan(prox64(case.h, np.full(P, np.nan), 1.0)).any()


@over(CASES)
def test_prox_has_its_derivative_in_reverse(case):
    v, cotangent, tangent = draw(6, P), draw(7, P), draw(8, P)
    with jax.enable_x64(True):
        along = jax.jit(jax.grad(lambda v: jnp.vdot(cotangent, case.h.prox(v, 0.6))))
        backward = along(v)
    bump = 1e-6 * tangent
    slope = (prox64(case.h, v + bump, 0.6) - prox64(case.h, v - bump, 0.6)) / 2e-6
    np.testing.assert_allclose(np.dot(backward, tangent), cotangent @ slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("h", [TotalVariation(0.5), Simplex(), L1Ball(0.5), L1(0.5)], ids=str)
def test_a_second_plain_call_of_prox_compiles_nothing(h, compiled):
    h.prox(draw(0, P), 0.5)
    before = compiled()
    h.prox(draw(1, P), 0.7)
    assert compiled() == before


@pytest.mark.parametrize("h", [L2Ball(1.0), GroupL1(0.5, LISTS)], ids=["L2Ball", "GroupL1"])
def test_the_derivative_at_zero_is_finite(h):
    assert np.isfinite(jax.jit(jax.jacrev(h.prox))(np.zeros(P), 1.0)).all()


@over(CASES)
def test_repr_reads_like_the_constructor_call(case):
    names = {"inf": np.inf, **globals()}
    again = eval(repr(case.h), names)
    assert repr(again) == repr(case.h)
    for ours, theirs in zip(jax.tree.leaves(case.h), jax.tree.leaves(again), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_repr_abbreviates_long_arrays_and_prints_tracers():
    assert repr(L1(np.ones(1000))) == "L1(strength=[1., 1., 1., ..., 1., 1., 1.])"
    seen = []
    jax.jit(lambda h: seen.append(repr(h)))(L1(np.ones(3)))
    assert seen[0].startswith("L1(strength=")


# feasibility and linear minimizers ----------------------------------------------------

EDGES = {
    "NonNegative": (NonNegative(), [-1, 1], [0, 1]),
    "NonNegative, small": (NonNegative(), [-1e-3, 0], [0, 5e-3]),
    "Box": (Box(-1.0, [1.0, 1e3]), [1, 0], [1, 1e3]),
    "Box from zero": (Box(0.0, np.inf), [-1, 0], [0, 5]),
    "Box from zero, small": (Box(0.0, np.inf), [-1e-3, 0], [0, 5e-3]),
    "L1Ball": (L1Ball(2.0), [1, 1], [1, 1]),
    "L2Ball": (L2Ball(5.0), [3, 4], [3, 4]),
    "LinfBall": (LinfBall(2.0), [1, 0], [2, -2]),
    "Simplex": (Simplex(), [-1, 1], [0, 1]),
    "Halfspace": (Halfspace([3.0, 4.0], 25.0), [3, 4], [3, 4]),
    "AffineSet": (AffineSet([[1.0, 1.0]], [2.0]), [1, 1], [1, 1]),
    "NuclearBall": (NuclearBall(2.0, (1, 2)), [0, 1], [0, 2]),
}


@pytest.mark.parametrize(("h", "outwards", "edge"), EDGES.values(), ids=EDGES.keys())
def test_indicators_forgive_rounding_and_nothing_else(h, outwards, edge):
    outwards, edge = np.array(outwards, float), np.array(edge, float)
    assert value64(h, edge) == 0
    assert value64(h, edge + 1e-9 * outwards) == 0
    assert value64(h, edge + 1e-5 * outwards) == np.inf
    assert jit_value(h, np.float32(edge + 1e-5 * outwards)) == 0
    assert jit_value(h, np.float32(edge + 0.1 * outwards)) == np.inf
    assert jit_value(h, np.float32(edge * np.nan)) == np.inf


@over(COMPACT)
def test_lmo_minimizes_a_linear_function(case):
    for seed in range(3):
        d = draw(seed, P)
        u = cp.Variable(P)
        problem = cp.Problem(cp.Minimize(d @ u), case.penalty(u)[1])
        best = problem.solve("CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11)
        with jax.enable_x64(True):
            vertex = np.asarray(jax.jit(case.h.lmo)(d))
        assert value64(case.h, vertex) == 0
        np.testing.assert_allclose(d @ vertex, best, rtol=1e-6)


@over(COMPACT)
def test_lmo_keeps_shape_and_dtype_vmaps_and_stands_a_zero_direction(case):
    directions = np.float32(draw(9, 4, P))
    directions[0] = 0
    vertices = jax.jit(jax.vmap(case.h.lmo))(directions)
    assert vertices.dtype == jnp.float32
    for d, vertex in zip(directions, vertices, strict=True):
        np.testing.assert_allclose(vertex, case.h.lmo(d), atol=1e-6)
        assert case.h.value(vertex) == 0


@over(CASES)
def test_only_compact_sets_have_lmo(case):
    assert hasattr(case.h, "lmo") == case.compact


# each class's own corners -------------------------------------------------------------


def simplex_by_sorting(v, radius):
    v = np.asarray(v, np.float64)
    u = np.sort(v)[::-1]
    cuts = (np.cumsum(u) - radius) / np.arange(1, v.size + 1)
    return np.maximum(v - cuts[np.flatnonzero(u > cuts)[-1]], 0)


@pytest.mark.parametrize("offset", [0, 1e4, 1e6, -1e6])
def test_simplex_in_float32_does_not_mind_a_common_offset(offset):
    v = np.float32(draw(0, 1000, spread=0.3) + offset)
    x = np.asarray(Simplex().prox(v, 1.0))
    np.testing.assert_allclose(x, simplex_by_sorting(v, 1.0), atol=2e-6)
    np.testing.assert_allclose(x.sum(dtype=float), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("v", "expected"),
    [
        ([5.0], [1.0]),
        ([-5.0], [1.0]),
        ([2.0, 2.0], [0.5, 0.5]),
        ([3e38, -3e38, -3e38], [1, 0, 0]),
        ([1e30, 1e30], [0.5, 0.5]),
        ([0.0, 0.0, -1.0], [0.5, 0.5, 0]),
    ],
)
def test_simplex_corners(v, expected):
    np.testing.assert_allclose(Simplex().prox(np.float32(v), 1.0), expected)


@pytest.mark.parametrize(
    ("v", "expected"),
    [([5.0], [1.0]), ([-5.0], [-1.0]), ([3e38, -1e38], [1, 0]), ([1e30, -1e30], [0.5, -0.5])],
)
def test_l1_ball_corners(v, expected):
    np.testing.assert_allclose(L1Ball(1.0).prox(np.float32(v), 1.0), expected)


def test_many_equal_entries_share_the_simplex():
    x = np.asarray(Simplex().prox(np.ones(100_000, np.float32), 1.0))
    np.testing.assert_allclose(x, 1e-5, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25])
def test_norms_neither_overflow_nor_underflow_in_float32(size):
    v = np.float32([3 * size, 4 * size])
    expected = np.array([0.6, 0.8]) * size
    np.testing.assert_allclose(L2Ball(size).prox(v, 1.0), expected, rtol=1e-6)
    np.testing.assert_allclose(GroupL1(4 * size, [0, 0]).prox(v, 1.0), expected, rtol=1e-6)
    np.testing.assert_allclose(GroupL1(1.0, [0, 0]).value(v), 5 * size, rtol=1e-6)
    projected = Halfspace([3 * size, 4 * size], 0.0).prox(v, 1.0)
    np.testing.assert_allclose(projected, [0, 0], atol=1e-6 * size)


def test_l1_gives_exact_zeros():
    np.testing.assert_array_equal(L1(1.0).prox(np.float32([0.3, -1, 1.5, 0]), 1.0), [0, 0, 0.5, 0])


def test_group_lasso_drops_whole_groups():
    u = GroupL1(1.0, LISTS).prox(np.float32([0.5, 3, 4, 0.5, 1, 0]), 1.0)
    np.testing.assert_allclose(u, [0, 2.4, 3.2, 0, 0, 0], rtol=1e-6)


def test_group_labels_and_lists_say_the_same():
    by_label, by_list = GroupL1(1.0, np.array(LABELS)), GroupL1(1.0, LISTS)
    np.testing.assert_array_equal(by_label.groups, by_list.groups)
    np.testing.assert_array_equal(GroupL1(1.0, np.array([[2, 0], [1, 3]])).groups, [0, 1, 0, 1])


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 6), (6, 1)])
@pytest.mark.parametrize("kind", [NuclearNorm, NuclearBall])
def test_matrices_come_back_in_the_shape_they_came_in(kind, shape):
    h, v = kind(0.8, shape), draw(1, *shape)
    flat = prox64(h, v.ravel(), 0.5)
    assert flat.shape == (P,)
    np.testing.assert_array_equal(prox64(h, v, 0.5), flat.reshape(shape))


def test_affine_set_stands_redundant_zero_and_badly_scaled_rows():
    plain = AffineSet(ROWS[:2], ROWS[:2] @ POINT)
    rows = np.vstack([1e-17 * ROWS[0], ROWS[1], np.zeros(P), ROWS[1]])
    h = AffineSet(rows, rows @ POINT)
    assert h.Q.shape == (2, P)
    v = draw(1, P)
    np.testing.assert_allclose(prox64(h, v, 1.0), prox64(plain, v, 1.0), atol=1e-12)
    single = np.float32(ROWS / 3)
    assert AffineSet(single, np.float32(ROWS @ POINT / 3)).Q.shape == (2, P)


# total variation ----------------------------------------------------------------------


def assert_total_variation_optimal(v, u, threshold, rounding):
    """u - v = D' z with |z| <= threshold, and z = threshold sign(D u) where u jumps.

    D the difference matrix: necessary and sufficient, and blind to how u was found.
    """
    v, u = np.asarray(v, np.float64), np.asarray(u, np.float64)
    scale = max(np.abs(v).max(), threshold)
    z = np.append(0, np.cumsum(u - v))
    assert abs(z[-1]) <= rounding * scale * v.size
    inner, jumps = z[1:-1], np.diff(u)
    assert np.abs(inner).max(initial=0) <= threshold + rounding * scale * v.size
    slack = threshold * np.abs(jumps) - inner * jumps
    assert np.abs(slack).max(initial=0) <= rounding * scale**2 * v.size


SIGNALS = {
    "one entry": np.array([3.0]),
    "two entries": np.array([1.0, 4.0]),
    "two equal entries": np.array([2.0, 2.0]),
    "constant": np.full(60, 0.1),
    "ties": np.array([0.0, 1, 1, 0, 2, 2, 1, 0, 0, 1, 2, 1] * 5),
    "alternating": np.array([1.0, -1.0] * 30),
    "plateaus": np.repeat(draw(0, 10), 20) + draw(1, 200, spread=0.05),
    "staircase": np.floor(np.arange(60) / 10),
    "far from zero": 1e3 + draw(2, 200),
    "geometric": 2.0 ** np.linspace(-20, 20, 200),
    "cauchy": np.random.default_rng(0).standard_cauchy(2000),
    "walk": np.cumsum(draw(3, 2000)),
    "white noise": draw(4, 2000),
}
jit_tv = jax.jit(lambda v, threshold: TotalVariation(2.0).prox(v, threshold / 2))


@pytest.mark.parametrize("v", SIGNALS.values(), ids=SIGNALS.keys())
def test_total_variation_prox_meets_the_optimality_conditions(v):
    for threshold in (0.0, 1e-3, 0.5, 1.0, 20.0, 1e4):
        with jax.enable_x64(True):
            double = jit_tv(v, threshold)
        assert_total_variation_optimal(v, double, threshold, rounding=1e-14)
        v32 = np.float32(v)
        assert_total_variation_optimal(v32, jit_tv(v32, threshold), threshold, rounding=1e-6)


@examples
@given(
    v=hnp.arrays(np.float64, 30, elements=st.integers(-3, 3).map(float)),
    threshold=st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 7.0]),
)
def test_total_variation_prox_with_many_ties(v, threshold):
    with jax.enable_x64(True):
        u = jit_tv(v, threshold)
    assert_total_variation_optimal(v, u, threshold, rounding=1e-14)


def test_total_variation_of_a_long_signal_matches_cvxpy():
    v, u = draw(5, 2000) + np.repeat([0.0, 3, 1, 2], 500), cp.Variable(2000)
    cp.Problem(cp.Minimize(cp.sum_squares(u - v) / 2 + 4 * cp.tv(u))).solve("CLARABEL")
    np.testing.assert_allclose(prox64(TotalVariation(4.0), v, 1.0), u.value, atol=1e-3)


def test_total_variation_leaves_exact_plateaus():
    u = jit_tv(np.float32([0, 0.1, 0.2, 5, 5.1, 4.9]), 1.0)
    np.testing.assert_allclose(u, [0.1 + 1 / 3] * 3 + [5 - 1 / 3] * 3, rtol=1e-6)
    assert len(np.unique(u)) == 2


def test_a_long_float32_signal_keeps_a_small_step_far_from_zero():
    v = np.repeat(np.float32([1000.3, 1000.301]), 10_000)
    np.testing.assert_allclose(jit_tv(v, 0.01), v, atol=2e-4, rtol=0)


def test_rows_that_need_unequal_rounds_do_not_disturb_each_other():
    rows = np.stack([np.zeros(200), SIGNALS["geometric"], SIGNALS["plateaus"]])
    with jax.enable_x64(True):
        together = jax.vmap(jit_tv, in_axes=(0, None))(rows, 0.5)
        for row, u in zip(rows, together, strict=True):
            np.testing.assert_allclose(u, jit_tv(row, 0.5), rtol=1e-13)


# blocks -------------------------------------------------------------------------------

PARAMS = {
    "layer": {"w": draw(0, 2, 3), "b": draw(1, 3)},
    "scale": draw(2),
    "tail": [draw(3, 4)],
}


def blocks(strength=0.5):
    return Blocks(
        {"layer": L1(strength), "scale": NonNegative(), "tail": [GroupL1(1.0, [0, 0, 1, 1])]}
    )


def test_blocks_is_the_sum_of_its_parts():
    step = 0.3
    with jax.enable_x64(True):
        u = jax.jit(blocks().prox)(PARAMS, step)
        u, value = jax.device_get((u, jax.jit(blocks().value)(u)))
    assert jax.tree.map(np.shape, u) == jax.tree.map(np.shape, PARAMS)
    for name in ("w", "b"):
        leaf = PARAMS["layer"][name]
        shrunk = np.sign(leaf) * np.maximum(np.abs(leaf) - 0.5 * step, 0)
        np.testing.assert_allclose(u["layer"][name], shrunk, atol=1e-14)
    assert u["scale"] == max(PARAMS["scale"], 0)
    for half in (slice(0, 2), slice(2, 4)):
        part = PARAMS["tail"][0][half]
        shrunk = part * max(0, 1 - step / np.linalg.norm(part))
        np.testing.assert_allclose(u["tail"][0][half], shrunk, atol=1e-14)
    layer = sum(np.abs(leaf).sum() for leaf in u["layer"].values())
    norms = sum(np.linalg.norm(u["tail"][0][half]) for half in (slice(0, 2), slice(2, 4)))
    np.testing.assert_allclose(value, 0.5 * layer + norms)


def test_a_part_that_covers_a_subtree_sees_it_as_one_vector():
    params = {"w": np.float32([[3.0]]), "b": np.float32([4.0])}
    u = Blocks(L2Ball(1.0)).prox(params, 1.0)
    np.testing.assert_allclose([u["w"][0, 0], u["b"][0]], [0.6, 0.8], rtol=1e-6)


def test_one_infeasible_block_is_enough():
    with jax.enable_x64(True):
        assert blocks().value({**PARAMS, "scale": np.float64(-1)}) == np.inf


def test_blocks_do_not_recompile_for_new_numbers():
    traces = []

    @jax.jit
    def prox(h, params):
        traces.append(h)
        return h.prox(params, 1.0)

    first, second = prox(blocks(0.1), PARAMS), prox(blocks(0.2), PARAMS)
    assert len(traces) == 1
    assert not np.allclose(first["layer"]["w"], second["layer"]["w"])


@pytest.mark.parametrize(
    ("parts", "params", "match"),
    [
        (
            {"a": Zero()},
            [1.0],
            r"params parts is dict of \['a'\] where params is list of \[0\]",
        ),
        ({"a": Zero()}, {"a": 1.0, "b": 2.0}, r"where params is dict of \['a'\], \['b'\]"),
        ({"a": [Zero(), L1(1)]}, {"a": [1.0]}, r"params\['a'\] parts is list"),
        ({"a": {"b": Zero()}}, {"a": np.ones(2)}, r"params\['a'\] .* one leaf of shape \(2,\)"),
        ([Zero(), None], [np.ones(2), np.ones(2)], r"params\[1\] parts is None"),
        (
            [Zero(), L1([1, 2])],
            [np.ones(2), np.ones(3)],
            r"strength is for .* \(2,\), got .*\(3,\)",
        ),
        ([Zero(), L1([1, 2])], [np.ones(2), np.ones(3)], r"in params\[1\], under L1"),
    ],
)
def test_params_that_do_not_match_are_refused_by_place(parts, params, match):
    with pytest.raises(ValueError, match=match):
        Blocks(parts).prox(params, 1.0)
    with pytest.raises(ValueError, match=match):
        Blocks(parts).value(params)


# a user's own -------------------------------------------------------------------------


class Ridge:
    """Plain Python, no pytree."""

    def value(self, x):
        return (x**2).sum()

    def prox(self, v, step):
        return v / (1 + 2 * step)


def test_as_regularizer_lets_regularizers_through():
    for case in CASES.values():
        h = case.h
        assert as_regularizer(h) is h


def test_as_regularizer_wraps_a_users_own_object():
    h = as_regularizer(Ridge())
    assert isinstance(h, Custom)
    assert not hasattr(h, "lmo")
    v = draw(0, P)
    np.testing.assert_allclose(prox64(h, v, 0.5), v / 2)
    np.testing.assert_allclose(value64(h, v), v @ v)
    assert jit_prox(h, np.float32(v), 0.5).dtype == jnp.float32
    u = Blocks({"a": Ridge(), "b": Zero()}).prox({"a": v, "b": v}, 0.5)
    np.testing.assert_allclose(u["a"], v / 2, rtol=1e-6)


def test_a_users_own_linear_minimizer_is_kept():
    class Ball(Ridge):
        def lmo(self, direction):
            return -direction

    assert as_regularizer(Ball()).lmo(3.0) == -3.0


def test_a_users_own_record_rides_as_it_is():
    @record
    class Scaled(Regularizer):
        strength: float

        def value(self, x):
            return self.strength * jnp.sum(x)

        def prox(self, v, step):
            return v - step * self.strength

    @record
    class Unrelated(Ridge):
        pass

    for h in (Scaled(0.5), Unrelated()):
        assert as_regularizer(h) is h
    assert repr(Scaled(0.5)) == "Scaled(strength=0.5)"
    np.testing.assert_allclose(Blocks([Unrelated()]).prox([np.ones(2)], 0.5)[0], 0.5)


class NoProx:
    def value(self, x):
        return 0.0


class Unhashable(Ridge):
    __hash__ = None  # pyright: ignore


class WrongShape(Ridge):
    def prox(self, v, step):
        return v[:1]


# what is refused ----------------------------------------------------------------------

NAN, INF = np.nan, np.inf
REFUSED = [
    (lambda: L1(-1), ValueError, "strength must be >= 0, got -1"),
    (lambda: L1(NAN), ValueError, "strength must be finite, got nan"),
    (lambda: L1(INF), ValueError, "strength must be finite"),
    (lambda: L1("much"), TypeError, "strength must be a number, got 'much'"),
    (lambda: L1(None), TypeError, "strength must be a number"),
    (lambda: L1([1, -2.0]), ValueError, r"strength must be >= 0, but entry \(1,\) is -2"),
    (lambda: L1([1, NAN]), ValueError, r"strength must be finite, but entry \(1,\)"),
    (lambda: L2(-1), ValueError, "strength must be >= 0"),
    (lambda: ElasticNet(-1, 0), ValueError, "l1 must be >= 0"),
    (lambda: ElasticNet(0, -1), ValueError, "l2 must be >= 0"),
    (lambda: GroupL1(-1, [0]), ValueError, "strength must be >= 0"),
    (lambda: GroupL1(1, []), ValueError, "groups must hold at least one"),
    (lambda: GroupL1(1, 3), TypeError, "groups must be a vector of labels or lists"),
    (lambda: GroupL1(1, [0.5, 1]), TypeError, "groups must hold integers"),
    (lambda: GroupL1(1, [[0], ["a"]]), TypeError, "groups must hold integers"),
    (lambda: GroupL1(1, [[0, 1], []]), ValueError, "groups .* group 1 is"),
    (lambda: GroupL1(1, [[0, 1], [1, 2]]), ValueError, "groups must not overlap, but index 1"),
    (lambda: GroupL1(1, [[0, 1], [3]]), ValueError, "groups .* got 3 but not 2"),
    (lambda: GroupL1(1, [[0, -1]]), ValueError, "groups .* got -1 but not 1"),
    (
        lambda: GroupL1(1, [0, 1], [1.0]),
        ValueError,
        "weights must hold one number for each of the 2",
    ),
    (lambda: GroupL1(1, [0, 1], [1, -1]), ValueError, "weights must be >= 0"),
    (lambda: NuclearNorm(-1, (2, 3)), ValueError, "strength must be >= 0"),
    (lambda: NuclearNorm(1, (2, 0)), ValueError, r"shape\[1\] must be an integer >= 1, got 0"),
    (lambda: NuclearNorm(1, (2.5, 1)), TypeError, r"shape\[0\] must be an integer"),
    (lambda: NuclearNorm(1, 6), ValueError, "shape must be two integers"),
    (lambda: NuclearBall(1, (1, 2, 3)), ValueError, "shape must be two integers"),
    (lambda: NuclearBall(0, (1, 2)), ValueError, "radius must be > 0"),
    (lambda: TotalVariation(-1), ValueError, "strength must be >= 0"),
    (lambda: Box(1, 0), ValueError, "lo must be <= hi .* lo = 1.0 and hi = 0.0"),
    (lambda: Box([0, 2], [1, 1]), ValueError, r"lo must be <= hi .* at entry \(1,\)"),
    (lambda: Box(NAN, 1), ValueError, "lo must not be NaN"),
    (lambda: Box(0, [1, NAN]), ValueError, "hi must not be NaN"),
    (lambda: Box(INF, INF), ValueError, "lo must be <= hi with a number in between"),
    (lambda: Box(-INF, -INF), ValueError, "lo must be <= hi with a number in between"),
    (lambda: Box([0, 0], [1, 1, 1]), ValueError, "lo and hi must be .* one shape"),
    (lambda: Box("a", 1), TypeError, "lo must be a number"),
    (lambda: L1Ball(0), ValueError, "radius must be > 0, got 0"),
    (lambda: L2Ball(-1), ValueError, "radius must be > 0, got -1"),
    (lambda: LinfBall(INF), ValueError, "radius must be finite"),
    (lambda: Simplex(NAN), ValueError, "radius must be finite"),
    (lambda: Halfspace([0, 0], 1), ValueError, "normal must be a nonzero vector"),
    (lambda: Halfspace(2.0, 1), ValueError, "normal must be a nonzero vector"),
    (lambda: Halfspace([1, NAN], 1), ValueError, "normal must be finite"),
    (lambda: Halfspace([1, 2], INF), ValueError, "offset must be finite"),
    (lambda: AffineSet([1, 2], [1]), ValueError, "A must be a matrix"),
    (lambda: AffineSet([[0, 0]], [0]), ValueError, "A must have a nonzero entry"),
    (lambda: AffineSet([[1, 2]], [1, 2]), ValueError, "b must hold one number per row"),
    (lambda: AffineSet([[1, 2], [2, 4]], [1, 3]), ValueError, "A and b must be consistent"),
    (
        lambda: AffineSet([[1, 2], [0, 0]], [1, 3]),
        ValueError,
        "A and b must be consistent.*row 1",
    ),
    (lambda: AffineSet([[1, 2]], [NAN]), ValueError, "b must be finite"),
    (lambda: Blocks({}), ValueError, "parts must hold at least one regularizer"),
    (lambda: Blocks({"a": [Zero(), 3]}), TypeError, r"parts\['a'\]\[1\].* 3 of type int lacks"),
    (lambda: Blocks([L1]), TypeError, r"parts\[0\].* got the class L1: call it"),
    (lambda: as_regularizer(NoProx()), TypeError, "NoProx lacks prox"),
    (lambda: as_regularizer(None), TypeError, "NoneType lacks value and prox"),
    (lambda: as_regularizer(Ridge), TypeError, r"got the class Ridge: call it"),
    (lambda: as_regularizer(Unhashable()), TypeError, "h must be hashable.*__hash__"),
    (
        lambda: as_regularizer(WrongShape()).prox(np.ones(2), 1),
        ValueError,
        "WrongShape.prox must",
    ),
    (
        lambda: L1([1, 2]).prox(np.ones(3), 1.0),
        ValueError,
        r"strength is for .*\(2,\), got .*\(3,\)",
    ),
    (
        lambda: L1([1, 2]).value(np.ones(1)),
        ValueError,
        r"strength is for .*\(2,\), got .*\(1,\)",
    ),
    (lambda: L1(1).prox(np.ones(3), np.ones(4)), ValueError, r"step is for .*\(4,\)"),
    (lambda: Box([0, 0], 1).prox(np.ones(3), 1.0), ValueError, "lo is for"),
    (lambda: GroupL1(1, [0, 1]).prox(np.ones(3), 1.0), ValueError, r"groups is for .*\(2,\)"),
    (lambda: Halfspace([1, 2], 0).value(np.ones((2, 2))), ValueError, "normal is for"),
    (lambda: AffineSet([[1, 2]], [1]).prox(np.ones(3), 1.0), ValueError, r"A is for .*\(2,\)"),
    (lambda: NuclearNorm(1, (2, 3)).prox(np.ones((3, 2)), 1.0), ValueError, "shape is for"),
    (lambda: NuclearNorm(1, (2, 3)).value(np.ones(5)), ValueError, "shape is for"),
    (
        lambda: TotalVariation(1).prox(np.ones((2, 2)), 1.0),
        ValueError,
        "TotalVariation takes a flat",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_bad_input_is_refused_by_name(call, error, match):
    with pytest.raises(error, match=match):
        call()
