"""The connection to a Ray cluster. Whatever is asked of it ends in time, with an answer or with the word that it is gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ansorlite.errors import TuningError

_T = TypeVar("_T")

#: The resource of a node that times programs: ``ray start --resources='{"ansorlite_runner": 1}'``.
RUNNER: Final = "ansorlite_runner"

#: Seconds for what a cluster that is there answers at once, and for a connection to be made or given up.
_ANSWER: Final = 20.0
_CONNECT: Final = 60.0

#: How often a head that answers is asked for a server of our own. On a machine with much to do the first may not start in time.
_TRIES: Final = 3

#: Without the first Ray ends the process that has lost the head: it shall wait, and say so. Ray's processes would give way to all
#: others, those too that time programs. And nobody was asked for statistics.
_ENVIRONMENT: Final = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class GoneError(Exception):
    """The cluster, a node of it, an actor or an object is gone. What it says is the reason, for people."""


def within(seconds: float, do: Callable[[], _T]) -> _T:
    """What ``do`` gives, which asks something of the cluster. Without its head Ray would keep the caller for ever in most of its
    functions; without a connection it would make one, somewhere.

    Raises:
        GoneError: there is no connection, or ``do`` fails, or takes longer.
    """
    if not ray.is_initialized():
        raise GoneError("there is no connection to the cluster")
    return _in_time(seconds, do)


def _in_time(seconds: float, do: Callable[[], _T]) -> _T:
    """
    Raises:
        GoneError: ``do`` fails, or takes longer.
    """
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(do())
        except BaseException as error:  # Ray has no base of its own for what goes wrong
            errors.append(error)

    thread = threading.Thread(target=run, name="ansorlite-ray", daemon=True)
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    if errors:
        raise GoneError(first_line(errors[0])) from errors[0]
    raise GoneError(f"no answer within {seconds:.0f} s")


def first_line(error: BaseException) -> str:
    """What it says, in one line. Where the first only announces a traceback, the last has the reason."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") else lines[0]


@dataclass(frozen=True)
class Node:
    """A machine of the cluster.

    Attributes:
        identity: Ray's, another one after every start.
        address: of its network.
        cores: that Ray may give away there.
        times: whether it is one that times programs.
    """

    identity: str
    address: str
    cores: int
    times: bool


class Cluster:
    """The connection; made again when the head was gone.

    Attributes:
        generation: counts connections: actors of an older one are gone.
    """

    def __init__(self, address: str) -> None:
        """
        Args:
            address: ``ray``: of this process, if it has a connection, else that of this machine, which is started if there is
                none; ``ray://head:10001``.

        Raises:
            TuningError: there is no cluster.
        """
        self.address = address
        self.generation = 0
        self._lock = threading.Lock()
        self._own = not ray.is_initialized()
        if self._own:
            try:
                self._connect()
            except GoneError as error:
                raise TuningError(f"there is no Ray cluster at {address}: {error}") from error

    def _connect(self) -> None:
        """
        Raises:
            GoneError: no head answers, or it starts no server for us.
        """
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        # The first time, Ray may start a cluster on this machine; later, the one that was lost is looked for.
        place = self.address if "://" in self.address else None if self.generation == 0 else "auto"
        for left in reversed(range(_TRIES)):
            try:
                _in_time(_CONNECT, lambda: ray.init(address=place, logging_level="ERROR", log_to_driver=False))
                break
            except GoneError as error:
                # Ray aborts where the head is there, but has not started the server that each client has of its own.
                if not left or not isinstance(error.__cause__, ConnectionAbortedError):
                    raise
                self._disconnect()
        self.generation += 1

    def close(self) -> None:
        """Give up the connection if it was made here."""
        if self._own:
            self._own = False
            self._disconnect()

    def _disconnect(self) -> None:
        try:
            _in_time(_CONNECT, ray.shutdown)
        except GoneError:
            return  # so is the connection, then

    def reconnect(self) -> bool:
        """Whether the head is there, after another try if it was gone."""
        with self._lock:
            try:
                self.nodes()
                return True
            except GoneError:
                pass
            if not self._own:
                return False
            self._disconnect()
            try:
                self._connect()
            except GoneError:
                return False
            return True

    def nodes(self) -> list[Node]:
        """Those that are alive. Where none says that it times programs, it is the one that this process is attached to.

        Raises:
            GoneError: nobody answers.
        """
        alive = within(_ANSWER, lambda: [node for node in ray.nodes() if node["Alive"]])
        marked = {node["NodeID"] for node in alive if node["Resources"].get(RUNNER)}
        if not marked:
            marked = {within(_ANSWER, lambda: ray.get_runtime_context().get_node_id())}
        return [
            Node(node["NodeID"], node["NodeManagerAddress"], int(node["Resources"].get("CPU", 0)), node["NodeID"] in marked)
            for node in alive
        ]

    def start(self, actor: type, node: Node, cores: float, arguments: tuple[Any, ...]) -> Any:
        """An actor on that very node, which takes so many of its cores, when they are free.

        Raises:
            GoneError: nobody answers.
        """
        options = {
            "num_cpus": cores,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.identity, soft=False),
            "max_restarts": 0,
        }
        made = ray.remote(actor).options(**options)  # type: ignore[call-overload]
        return within(_ANSWER, lambda: made.remote(*arguments))


def kill(actor: Any) -> None:
    """End an actor, whatever it does."""
    try:
        within(_ANSWER, lambda: ray.kill(actor))
    except GoneError:
        return
