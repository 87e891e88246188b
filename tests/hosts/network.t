#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Over which network PEs of several hosts speak: that of the hosts' addresses, one that is named, and none with
public addresses unless it is vouched for."""
import os
import re
import subprocess
import sys

import rig
import verbs

rig.enter(2)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import BUILD, OSHRUN, case, main, patience  # noqa: E402

SECOND = {"h0": "192.168.7.1", "h1": "192.168.7.2"}  # on eth1
PUBLIC = {"h0": "9.9.9.1", "h1": "9.9.9.2"}  # on eth0, as well


def job(hosts, **variables):
    """A program that puts, gets and reduces over these hosts."""
    command = [OSHRUN, "--hosts", ",".join(hosts), BUILD / "examples/counts"]
    return subprocess.run(command, env={**os.environ, "WEFT_SSH": "fakessh", "WEFT_HOST_TIMEOUT": "2", **variables},
                          text=True, capture_output=True, timeout=patience(30))


def received(device):
    """Bytes that h0 has received there."""
    text = subprocess.run(["on", "h0", "cat", f"/sys/class/net/{device}/statistics/rx_bytes"], text=True, capture_output=True)
    return int(text.stdout)


def add_second_network():
    for host, address in SECOND.items():
        pid = str(verbs.pid_of(host))
        for line in (f"link add {host}b type veth peer name eth1 netns {pid}", "link add second type bridge",
                     f"link set {host}b master second up", "link set second up"):
            subprocess.run(["ip", *line.split()], stderr=subprocess.DEVNULL)
        verbs.within(host, "ip", "addr", "add", f"{address}/24", "dev", "eth1")
        verbs.within(host, "ip", "link", "set", "eth1", "up")
    subprocess.run(["ip", "addr", "add", "192.168.7.254/24", "dev", "second"], check=True)


@case("hosts are named by addresses, and PEs speak over the network of these")
def addresses():
    add_second_network()
    for hosts, used, other in (([rig.address_of("h0"), rig.address_of("h1")], "eth0", "eth1"),
                               (SECOND.values(), "eth1", "eth0")):
        before = received(used), received(other)
        result = job(hosts)
        assert result.returncode == 0 and "right" in result.stdout, result
        more = received(used) - before[0], received(other) - before[1]
        assert more[0] > 100000 and more[1] < 10000, more


@case("a network that is named is used, and one that does not lead to the other host is told")
def named():
    before = received("eth1")
    result = job(("h0", "h1"), UCX_NET_DEVICES="eth1")
    assert result.returncode == 0 and received("eth1") - before > 1000, result
    result = job(("h0", "h1"), UCX_NET_DEVICES="lo")
    assert result.returncode != 0 and re.search(r"on h[01]\) cannot reach host h[01]|on h[01] cannot be reached", result.stderr), result
    result = job(("h0", "h1"), UCX_NET_DEVICES="eth7")
    assert result.returncode != 0 and "no network interface of 'eth7' is up" in result.stderr, result


@case("a public address is refused with a line that says what to do, unless the network is trusted")
def public():
    for host, address in PUBLIC.items():
        verbs.within(host, "ip", "addr", "flush", "dev", "eth0")
        verbs.within(host, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
    subprocess.run(["ip", "addr", "add", "9.9.9.254/24", "dev", "bridge"], check=True)
    result = job(PUBLIC.values())
    assert result.returncode != 0, result
    assert "eth0 has the public address 9.9.9.1" in result.stderr and "WEFT_FAR_NETWORK=trusted" in result.stderr, result
    for variables in ({"WEFT_FAR_NETWORK": "trusted"}, {"UCX_NET_DEVICES": "eth1"}):
        result = job(PUBLIC.values(), **variables)
        assert result.returncode == 0, result


main()
