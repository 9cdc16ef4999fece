"""What every risk has in common: Psi = F + h as the user writes it.

A problem checks what it is given, once, on the host; `oracle` then places it on the device
in the precision of a run. `EmpiricalRisk` is eq. (3), `PopulationRisk` eq. (2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from proxgt import checks
from proxgt.params import OnParams, ParamSpec
from proxgt.problems.oracles import Loss, Oracle
from proxgt.problems.smoothness import estimate_smoothness
from proxgt.regularizers import Blocks, Regularizer, as_regularizer

Gathered = Callable[[Any, str], list[Any]]  # (value, topic) -> the values of all processes


class Problem(ABC):
    """What every risk offers; `nodes`, `objective`, `gradient` and `smoothness` are public."""

    nodes: int
    loss: Loss
    regularizer: Regularizer
    x0: Any

    def __init__(self, loss: Loss, regularizer: Any, x0: Any, smoothness: Any) -> None:
        if not callable(loss):
            raise TypeError(f"loss must be a function of (params, sample), got {loss!r}")
        self.loss = loss
        self.regularizer = as_regularizer(regularizer)
        self.x0 = x0
        # L; or a function of nodes, the largest L_i among theirs, where no process has all data
        self._given_smoothness: Any = smoothness
        if smoothness is not None and not callable(smoothness):
            self._given_smoothness = checks.positive_number("smoothness", smoothness)
        # shared with every `starting_at` of this problem: the placed data, and estimates of L
        self._cache: dict[Any, Any] = {}
        self._held: np.ndarray | None = None
        self._gathered: Gathered = _alone

    # -- for the user ---------------------------------------------------------------------

    def __repr__(self) -> str:
        loss = getattr(self.loss, "__name__", self.loss)
        return f"{type(self).__name__}(nodes={self.nodes}, loss={loss}, h={self.regularizer})"

    def objective(self, x: Any) -> float:
        """Psi(x) at one x, a params pytree (or its flat vector)."""
        with jax.enable_x64(self.precision == "float64"):
            spec = self.spec(x)
            w = jnp.asarray(spec.vector(x), self.precision)
            h = self.flat_regularizer(spec).value(w)
            return float(_risk(self.evaluator(spec, self.precision), w) / self.nodes + h)

    def gradient(self, x: Any) -> Any:
        """grad F(x) at one x, in the structure of x."""
        with jax.enable_x64(self.precision == "float64"):
            spec = self.spec(x)
            w = jnp.asarray(spec.vector(x), self.precision)
            evaluator = self.evaluator(spec, self.precision)
            gradient = np.asarray(_risk_gradient(evaluator, w)) / self.nodes
        return gradient if spec.holds(x) else spec.unravel(gradient)

    @property
    def smoothness(self) -> float:
        """L, as given or else estimated at x0; `smoothness_is_estimate` says which."""
        given = self._given_smoothness
        if given is not None and not callable(given):
            return given
        spec = self.spec()
        x0 = spec.vector(self.x0, name="x0")
        key = ("smoothness", spec, x0.tobytes())
        if key not in self._cache:
            here = given(self.held) if given else self._estimated_smoothness(spec, x0)
            self._cache[key] = max(self._gathered(here, "smoothness"))
        return self._cache[key]

    def _estimated_smoothness(self, spec: ParamSpec, x0: np.ndarray) -> float:
        with jax.enable_x64(False):
            evaluator = self.evaluator(spec, "float32")
            return estimate_smoothness(evaluator, self.nodes, self.held, x0)

    @property
    def smoothness_is_estimate(self) -> bool:
        """Whether `smoothness` was estimated by power iteration rather than given."""
        return self._given_smoothness is None

    def starting_at(self, x0: Any) -> Self:
        """This problem with another common start; data are shared, not copied.

        Where this problem has one, it says which params fit; a vector (p,) will do for them.
        """
        if self.x0 is not None:
            spec = self.spec()
            x0 = spec.unravel(spec.vector(x0, name="x0"))
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.x0 = x0
        return other

    @abstractmethod
    def pooled(self) -> Problem:
        """The same Psi on one node that has the samples of all, for methods of one machine."""

    def held_by(self, nodes: np.ndarray, gathered: Gathered) -> Self:
        """This problem in a process that holds the data of `nodes` and of no others.

        `nodes` remains n; what depends on the data of all goes through `gathered`.
        """
        if len(nodes) == self.nodes:
            return self
        other = self.starting_at(self.x0)
        other._cache, other._held, other._gathered = {}, nodes, gathered
        other._restrict()
        return other

    def _restrict(self) -> None:  # noqa: B027
        """Let go of what belongs to nodes that are not held."""

    @property
    def held(self) -> np.ndarray:
        """Ids of the nodes whose data are here."""
        return np.arange(self.nodes) if self._held is None else self._held

    # -- for the engines ------------------------------------------------------------------

    @property
    @abstractmethod
    def precision(self) -> str:
        """The float type of the data, in which `objective` and `gradient` are computed."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether nodes can compute the exact gradient of f_i."""

    @property
    @abstractmethod
    def samples_per_node(self) -> float:
        """m, the mean number of samples a node holds; infinity for a population."""

    @abstractmethod
    def sample_shapes(self) -> Any:
        """One sample, as a pytree of `jax.ShapeDtypeStruct`."""

    @abstractmethod
    def _place(self, spec: ParamSpec, dtype: str) -> tuple[Oracle, Any]:
        """The oracle that methods query and the evaluator that measures."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What makes this problem itself, for checkpoints: plain values and digests."""

    def oracle(self, spec: ParamSpec, dtype: str) -> Oracle:
        """What methods query, on the device in `dtype`."""
        return self._on_device(spec, dtype)[0]

    def evaluator(self, spec: ParamSpec, dtype: str) -> Any:
        """What measures: `risk(w)` and `risk_gradient(w)`, sums over nodes."""
        return self._on_device(spec, dtype)[1]

    def feed(
        self, oracle: Oracle, samples_before: Callable[[int], int], begin: int, end: int
    ) -> Oracle:
        """Ready `oracle` for steps begin to end - 1; only a stream has something to do.

        `samples_before(t)` samples are used before step t.
        """
        del samples_before, begin, end
        return oracle

    def flat_regularizer(self, spec: ParamSpec) -> Regularizer:
        """h of the flat vector: `Blocks` sees params through `spec`."""
        if isinstance(self.regularizer, Blocks):
            return OnParams(self.regularizer, spec)
        return self.regularizer

    def spec(self, x: Any = None) -> ParamSpec:
        """The params layout: that of x0, or of `x` where the problem carries no x0."""
        if self.x0 is not None:
            return ParamSpec.of(self.x0, "x0")
        if x is None:
            raise ValueError(
                "x0 is needed, as it says what params are: give it to the problem, "
                f"{type(self).__name__}(..., x0=params), or to solve(..., x0=params)"
            )
        return ParamSpec.of(x)

    def check_loss(self, spec: ParamSpec) -> None:
        """Refuse a loss that is not a differentiable scalar of (params, sample)."""
        structs = [jax.ShapeDtypeStruct(s, jnp.float32) for s in spec.shapes]
        params = jax.tree_util.tree_unflatten(spec.treedef, structs)
        sample = self.sample_shapes()
        try:
            value = jax.eval_shape(self.loss, params, sample)
        except Exception as error:
            raise TypeError(
                "loss must be a JAX function of (params, sample), but with params of shapes "
                f"{spec}, as x0 has them, and a sample of shapes {ParamSpec.of(sample)} it raised "
                f"{type(error).__name__}: {first_line(error)}{_likely(spec)}"
            ) from error
        if getattr(value, "shape", None) != ():
            shape = getattr(value, "shape", None)
            found = repr(value) if shape is None else f"an array of shape {shape}"
            raise ValueError(f"loss must return a scalar, but it returns {found}")
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise TypeError(f"loss must be differentiable, but it returns {value.dtype}")
        try:
            jax.eval_shape(jax.grad(self.loss), params, sample)
        except Exception as error:
            raise TypeError(
                f"loss must be differentiable by JAX: {type(error).__name__}: {first_line(error)}"
            ) from error

    def check_regularizer(self, spec: ParamSpec) -> None:
        """Refuse an h that JAX cannot trace, does not fit x0, or has no scalar value."""
        h = self.flat_regularizer(spec)
        x = jax.ShapeDtypeStruct((spec.size,), jnp.float32)
        try:
            value, _ = jax.eval_shape(lambda v: (h.value(v), h.prox(v, 0.5)), x)
        except ValueError:  # of the regularizers here, which name their field
            raise
        except Exception as error:
            raise TypeError(
                "regularizer must have JAX functions value(x) and prox(v, step), but with x and v "
                f"of shape {(spec.size,)} {self.regularizer!r} raised {type(error).__name__}: "
                f"{first_line(error)}"
            ) from error
        if value.shape != ():
            raise ValueError(
                f"regularizer must have a scalar value(x), but {self.regularizer!r} returns "
                f"shape {value.shape}"
            )

    def _on_device(self, spec: ParamSpec, dtype: str) -> tuple[Oracle, Any]:
        """One copy on the device is kept: the one last asked for."""
        key = (spec, dtype)
        if self._cache.get("placed", (None,))[0] != key:
            self.check_loss(spec)
            self.check_regularizer(spec)
            self._cache["placed"] = (key, self._place(spec, dtype))
        return self._cache["placed"][1]


def _alone(value: Any, topic: str) -> list[Any]:
    """`gathered` of a process that has all nodes."""
    del topic
    return [value]


@jax.jit
def _risk(evaluator: Any, w: jax.Array) -> jax.Array:
    return evaluator.risk(w)


@jax.jit
def _risk_gradient(evaluator: Any, w: jax.Array) -> jax.Array:
    return evaluator.risk_gradient(w)


def first_line(error: Exception) -> str:
    """What an error says, without the advice that JAX adds."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _likely(spec: ParamSpec) -> str:
    """A remedy for what is often the cause: a list of numbers in the place of a vector."""
    scalars = len(spec.shapes) > 1 and set(spec.shapes) == {()}
    return "; for a vector give x0 as an array, np.asarray(x0)" if scalars else ""
