"""Everything that one rank says to another: the only module that calls MPI.

`World` carries what crosses ranks outside steps: plain values while a run is set up, and at
record points sums over nodes and p-vectors. `Halo` carries what crosses ranks in a step: rows
of neighbouring nodes, K rounds a consensus.
"""

from __future__ import annotations

import functools
import logging
import os
import pickle
import sys
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from proxgt.cores import keep_to, usable_cores
from proxgt.engines.witness import Witness

_SPINS = 300  # polls before a waiting rank gives its core away
_YIELDS = 2000  # and before it sleeps between polls
_NAP = 1e-4
_READ = 2.0  # seconds given to the launcher to read a last line


def load_mpi() -> Any:
    """mpi4py's MPI, initialised; ValueError with the remedy where it is missing."""
    try:
        with warnings.catch_warnings():  # mpi4py's, of what `World` refuses in clearer words
            warnings.filterwarnings("ignore", "suspicious MPI execution environment")
            from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ValueError(
            f"engine='mpi' needs mpi4py and an MPI library: pip install 'proxgt[mpi]' ({error})"
        ) from None
    return MPI


class Launched(NamedTuple):
    """What this process is of a job, as mpiexec says before MPI begins."""

    rank: int = 0
    ranks: int = 1

    @classmethod
    def here(cls) -> Launched:
        """By the environment. Slurm's srun starts processes that need have no MPI in common."""
        env, names = os.environ, ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        if "MPI_LOCALNRANKS" in env:  # of MPICH's mpiexec and its kin
            names = ("PMI_RANK", "PMI_SIZE")
        return cls(*(int(env[name]) for name in names)) if names[1] in env else cls()


def withdraw(message: str, code: int) -> None:
    """Say why this process cannot begin MPI, and end the others that mpiexec started.

    MPICH's mpiexec lets them wait for ever for a rank that ends before MPI begins, unless
    told in its own protocol, PMI-1. Rank 0 goes first, so that what all lack is said once; the
    others give it the time by which it may have started later on a busy machine.
    """
    if Launched.here().rank:
        time.sleep(3)
    say(message)
    with suppress(KeyError, ValueError, OSError):
        os.write(int(os.environ["PMI_FD"]), f"cmd=abort exitcode={code}\n".encode())


def say(message: str) -> None:
    """A line on stderr, written and read before this returns, as far as can be known.

    MPICH's mpiexec drops what it has not yet read from a process when a job is aborted: of
    360 jobs that aborted right after their last line, 31 lost it or its end.
    """
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()
    until = time.monotonic() + _READ
    with suppress(ImportError, AttributeError, OSError, ValueError):  # no pipe, or not POSIX
        from fcntl import ioctl
        from termios import FIONREAD

        while any(ioctl(sys.stderr.fileno(), FIONREAD, bytes(4))) and time.monotonic() < until:
            time.sleep(0.005)


def refuse_loners(mpi: Any) -> None:
    """ValueError where processes that were started together are each alone in MPI.

    They are when the launcher is of another MPI than the library, and would all solve the whole.
    """
    started = max(Launched.here().ranks, int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)))
    if mpi.COMM_WORLD.Get_size() == 1 < started:
        library = " ".join(mpi.Get_library_version().replace(",", "\n").splitlines()[0].split())
        raise ValueError(
            f"{started} processes were started, but each is alone in its MPI: start them with the "
            f"mpiexec of the library that mpi4py loads, {library}, or have it load the launcher's "
            "by MPI4PY_LIBMPI=/path/to/libmpi.so; under Slurm try srun --mpi=pmi2 or --mpi=pmix"
        )


class Report(NamedTuple):
    """What a rank says in `World.gathered`."""

    topic: str
    value: Any
    error: str | None


class Agreed(ValueError):
    """An error that every rank raises, so that all of them end in the ordinary way."""

    every_rank = True


class World:
    """All ranks of the job."""

    def __init__(self) -> None:
        self.mpi = load_mpi()
        refuse_loners(self.mpi)
        self.comm = self.mpi.COMM_WORLD.Dup()
        self._alarm = self.mpi.COMM_WORLD.Dup()  # apart from whatever else ranks are waiting in
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self.seconds = 0.0  # spent in communication
        self.setting_up = True  # whether ranks meet only in `gathered`
        self.name = f"rank {self.rank}"  # and which nodes it holds, for messages
        self._witness: Witness | None = None
        self.cores, ranks_a_core = self._share_out()
        # Ranks beyond the cores must not spin: the rank they wait for needs their core.
        self.spins = _SPINS if ranks_a_core <= 1 else 0
        if self.size > 1:
            self._hook = sys.excepthook
            sys.excepthook = self._uncaught
            said = Path(tempfile.gettempdir()) / f"proxgt-{uuid.uuid4().hex}"
            self._witness = Witness(Path(self.gathered(str(said), "witness")[0]))
            self._witness.name(self.name)

    def _share_out(self) -> tuple[int, float]:
        """How many cores this rank has for itself, and how many ranks there are to a core.

        Ranks that no launcher has bound keep to equal shares of the machine's cores. Threads of
        all on all cores get in one another's way: at p = 123 they took 1.4 times as long.
        """
        here, mine = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED), usable_cores()
        any_of, all_of = np.zeros((2, max(mine | {os.cpu_count() or 1}) + 1), np.uint8)
        any_of[list(mine)] = all_of[list(mine)] = 1
        here.Allreduce(self.mpi.IN_PLACE, any_of, op=self.mpi.MAX)
        here.Allreduce(self.mpi.IN_PLACE, all_of, op=self.mpi.MIN)
        rank, ranks = here.Get_rank(), here.Get_size()
        here.Free()
        cores = np.flatnonzero(any_of)
        if 1 < ranks <= len(cores) == all_of.sum():
            keep_to(frozenset(np.array_split(cores, ranks)[rank].tolist()))
        return max(1, len(cores) // ranks), ranks / len(cores)

    def hold(self, nodes: str) -> None:
        """Name the nodes of this rank in what is said of it."""
        self.name = f"rank {self.rank} ({nodes})"
        if self._witness is not None:
            self._witness.name(self.name)

    def gathered(self, value: Any, topic: str) -> list[Any]:
        """What every rank gives, by rank; for small plain values, while setting up.

        A rank that fails gives its error instead, in `failed`, and all ranks raise it.
        """
        return self._exchanged(Report(topic, value, None))

    def failed(self, error: BaseException) -> None:
        """Take part in the gathering that other ranks are in or coming to, with an error."""
        self._exchanged(Report("error", None, str(error) or type(error).__name__))

    def _exchanged(self, mine: Report) -> list[Any]:
        text = np.frombuffer(pickle.dumps(tuple(mine)), np.uint8)
        sizes = np.empty(self.size, np.int64)
        self._wait([self.comm.Iallgather(np.array([text.size]), sizes)])
        texts = np.empty(sizes.sum(), np.uint8)
        self._wait([self.comm.Iallgatherv(text, (texts, sizes))])
        parts = np.split(texts, np.cumsum(sizes)[:-1])
        reports = [Report(*pickle.loads(part.tobytes())) for part in parts]
        failures = {r: report.error for r, report in enumerate(reports) if report.error}
        if failures:
            rank, error = next(iter(failures.items()))
            if len(failures) == self.size and len(set(failures.values())) == 1:
                raise Agreed(error)
            raise Agreed(f"rank {rank}: {error}")
        topics = [report.topic for report in reports]
        if len(set(topics)) > 1:
            raise Agreed(f"ranks run different programs: they are at {', '.join(topics)}")
        return [report.value for report in reports]

    def total(self, array: np.ndarray) -> np.ndarray:
        """The sum over ranks, the same bits on every rank.

        Reduced at rank 0 and sent from there: an all-reduce may give ranks different last
        bits, and they would then disagree about when to stop.
        """
        mine = np.array(array, order="C")
        result = np.empty_like(mine)
        self._wait([self.comm.Ireduce(mine, result, op=self.mpi.SUM, root=0)])
        return self.shared(result, 0)

    def shared(self, array: np.ndarray, root: int) -> np.ndarray:
        """Rank `root`'s array, on every rank."""
        array = np.array(array, order="C")  # writable, which an array of JAX's is not
        self._wait([self.comm.Ibcast(array, root=root)])
        return array

    def rows(self, mine: np.ndarray, blocks: list[np.ndarray], everywhere: bool) -> np.ndarray:
        """The rows of all nodes in node order, at rank 0 or everywhere."""
        width = int(np.prod(mine.shape[1:], dtype=np.int64))
        counts = [len(block) * width for block in blocks]
        out = np.empty((sum(map(len, blocks)), *mine.shape[1:]), mine.dtype)
        flat, mine = out.reshape(-1), np.ascontiguousarray(mine)
        if everywhere:
            self._wait([self.comm.Iallgatherv(mine, (flat, counts))])
        else:
            self._wait([self.comm.Igatherv(mine, (flat, counts), root=0)])
            if self.rank:
                return mine
        order = np.concatenate(blocks)
        out[order] = out.copy()
        return out

    def barrier(self) -> None:
        """Until all ranks are here."""
        self._wait([self.comm.Ibarrier()])

    def all_arrive(self, seconds: float) -> bool:
        """Whether all ranks come here within some seconds."""
        request, until = self._alarm.Ibarrier(), time.monotonic() + seconds
        while not request.Test():
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def end_job(self, error: BaseException) -> None:
        """End every rank of the job at once, with exit code 1, saying whose error it was."""
        if self._witness is not None:
            self._witness.hush()
        logging.getLogger("proxgt").debug("where it happened:", exc_info=error)
        text = " ".join(str(error).split()) or "no message"
        say(f"proxgt: {self.name}: {type(error).__name__}: {text}")
        self.mpi.COMM_WORLD.Abort(1)

    def _uncaught(self, kind: Any, error: BaseException, trace: Any) -> None:
        """A rank that would end alone, with the others waiting for it, ends them too."""
        if not getattr(error, "every_rank", False):
            self._hook(kind, error, trace)
            self.end_job(error)
        elif self.rank == 0 and isinstance(error, Agreed):
            sys.stderr.write(f"proxgt: {error}\n")
        elif self.rank == 0:
            self._hook(kind, error, trace)

    def _wait(self, requests: list[Any]) -> None:
        begin = time.perf_counter()
        wait(self.mpi.Request.Testall, requests, self.spins)
        self.seconds += time.perf_counter() - begin


@functools.cache
def world() -> World:
    """The one `World` of this process."""
    return World()


def led(function: Callable[[], Any], topic: str) -> Any:
    """What `function` gives at rank 0, which alone calls it, on every rank; so with its errors.

    For what must be decided once, such as the name of an output directory.
    """
    ranks, value = world(), None
    if ranks.rank == 0:
        try:
            value = function()
        except Exception as error:
            ranks.failed(error)  # raises
    return ranks.gathered(value, topic)[0]


def wait(done: Any, requests: list[Any], spins: int) -> None:
    """Until `done(requests)`; a rank that waits long gives its core to those it waits for."""
    for _ in range(spins + 1):
        if done(requests):
            return
    for _ in range(_YIELDS):
        os.sched_yield()
        if done(requests):
            return
    while not done(requests):
        time.sleep(_NAP)
