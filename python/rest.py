"""The REST example of README.md in Python, with a client that is generated from a running network's description (docs/api.md).

It is called with the network's address: python rest.py http://127.0.0.1:7447
"""

import sys
import time

from heliostat_client import Client
from heliostat_client.api.circuits import list_circuits
from heliostat_client.api.coflows import create_coflow, get_coflow
from heliostat_client.models import Circuits, Coflow, CoflowBody, CoflowState


def main(url: str) -> None:
    """Sends 50 MB from rack 0 to rack 2, shows circuits meanwhile, and waits until all has arrived."""
    with Client(base_url=url) as client:
        body = CoflowBody.from_dict({"name": "first", "send": True, "pairs": [{"from": "r0", "to": "r2", "bytes": "50MB"}]})
        coflow = create_coflow.sync(client=client, body=body)
        assert isinstance(coflow, Coflow), coflow
        seen = set()
        while coflow.state not in (CoflowState.FINISHED, CoflowState.CANCELLED):
            circuits = list_circuits.sync(client=client)
            assert isinstance(circuits, Circuits), circuits
            seen |= {f"r{c.input_} to r{c.output}" for c in circuits.circuits}
            time.sleep(0.02)
            coflow = get_coflow.sync(coflow.id, client=client)
            assert isinstance(coflow, Coflow), coflow
        print(f"{coflow.name}: {coflow.state}, {coflow.received_bytes} bytes in {coflow.cct_ns} ns, {coflow.over_ocs_bytes} over circuits")
        print("circuits seen:", ", ".join(sorted(seen)) or "none")


if __name__ == "__main__":
    main(sys.argv[1])
