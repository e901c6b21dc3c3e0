"""The workers of a cluster, by its address."""

from __future__ import annotations

from ansorlite import visible
from ansorlite.errors import TargetError, TuningError
from ansorlite.measure.cluster.builder import RayBuilder
from ansorlite.measure.cluster.engine import RUNNER, Cluster, GoneError
from ansorlite.measure.cluster.runner import RayRunner
from ansorlite.measure.roles import LostError, Workers
from ansorlite.measure.settings import MeasureSettings
from ansorlite.target import Target

_log = visible.logger(__name__)


def open_workers(address: str, target: Target, settings: MeasureSettings) -> Workers:
    """Builders on the spare cores of a cluster, and a runner on each node that times.

    Args:
        address: ``ray``: the connection of this process, or the cluster of this machine, which is started if there is none;
            ``ray://head:10001``.

    Raises:
        TargetError: no node that times can run the target's code.
        TuningError: there is no cluster, or no node in it that times.
    """
    cluster = Cluster(address)
    runners: list[RayRunner] = []
    try:
        nodes, reason = [node for node in cluster.nodes() if node.times], ""
        taken: set[str] = set()
        for node in nodes:
            try:
                runners.append(RayRunner(cluster, node, taken, target, settings))
            except (LostError, TargetError) as error:
                reason = str(error)
                _log.warning("a node of %s is not used to time programs: %s", address, error)
        if not nodes:
            raise TuningError(f"no node of {address} times programs; start one with ray start --resources='{{\"{RUNNER}\": 1}}'")
        if not runners:
            raise TuningError(f"no node of {address} can time programs: {reason}")
        return Workers(RayBuilder(cluster, target, settings), runners)
    except BaseException as error:
        for runner in runners:
            runner.close()
        cluster.close()
        if isinstance(error, GoneError):
            raise TuningError(f"the Ray cluster at {address} is gone: {error}") from error
        raise
