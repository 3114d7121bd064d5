"""Query Ray's head about its cluster, in a child: Ray's client may wait for half a minute, and prints messages."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass

from workers.host.errors import CannotJoin, HeadAway
from workers.host.options import HostOptions
from workers.host.token import refusal

_CHILD_SECONDS = 60.0
"""To import Ray on a busy machine, and to be told. Not tuned."""
_ANSWER_SECONDS = 10.0
_ALIVE = 0
"""State of a node in Ray's table (``GcsNodeInfo.ALIVE``)."""
_REFUSED = 3
"""Exit status of the child if the head refuses the token."""


@dataclass(frozen=True, slots=True)
class Head:
    """``announced`` is what `workers.ray.fleet_versions` stored; ``hosts`` are the names of those that measure now."""

    ray: str
    python: str
    announced: str | None
    hosts: tuple[str, ...]


def ask(options: HostOptions) -> Head:
    """Return the head's answer. Raises CannotJoin, or HeadAway if it does not answer as a head."""
    try:
        child = subprocess.run(
            [sys.executable, "-m", "workers.host.head", options.address],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_CHILD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise HeadAway(_strange(options.address, f"no answer within {_CHILD_SECONDS:.0f} s")) from None
    if child.returncode == _REFUSED:
        raise CannotJoin(refusal(options.address, options.token_file))
    if child.returncode != 0:
        lines = child.stderr.strip().splitlines() or ["no reason is known"]
        raise HeadAway(_strange(options.address, lines[-1]))
    fields = json.loads(child.stdout)
    return Head(fields["ray"], fields["python"], fields["announced"], tuple(fields["hosts"]))


def _strange(address: str, reason: str) -> str:
    return f"what listens at {address} does not answer as Ray's head does: {reason}"


def _ask(address: str) -> Head:
    from workers.ray.fleet_versions import announced
    from workers.ray.names import HOST_LABEL
    from workers.ray.private import gcs_at

    client = gcs_at(address)
    stored = client.internal_kv_get(b"CLUSTER_METADATA", namespace=b"cluster", timeout=_ANSWER_SECONDS)
    nodes = client.get_all_node_info(timeout=_ANSWER_SECONDS).values()
    return Head(
        ray=json.loads(stored)["ray_version"],
        python=json.loads(stored)["python_version"],
        announced=announced(client, _ANSWER_SECONDS),
        hosts=tuple(
            node.labels.get(HOST_LABEL) or node.node_manager_hostname
            for node in nodes
            if node.state == _ALIVE and node.resources_total.get("CPU", 0) > 0
        ),
    )


def _main(address: str) -> None:
    from ray.exceptions import AuthenticationError

    try:
        print(json.dumps(asdict(_ask(address))))
    except AuthenticationError:
        sys.exit(_REFUSED)


if __name__ == "__main__":
    _main(sys.argv[1])
