"""A cluster in a process of its own, until its standard input ends: ``python -m tests.unit.measure.ray_head '{"num_cpus": 1}'``.

A process that is a client of Ray must not start one: Ray forks, and what is forked while another thread is in gRPC may hang.
"""

import json
import sys

from ray.cluster_utils import Cluster


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args=json.loads(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
