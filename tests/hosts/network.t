#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The network that PEs of several hosts use: that of the hosts' addresses, at the addresses by which the hosts have
reached each other, or a network that is named; none with public addresses unless it is permitted."""
import os
import re
import subprocess
import sys
import tempfile

import rig
import verbs

rig.enter(2)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from by_hand import Processes  # noqa: E402
from harness import BUILD, OSHRUN, Skip, case, main, patience  # noqa: E402

UCX = (BUILD / "lib/libweft_ucx.so").exists()
SECOND = {"h0": "192.168.7.1", "h1": "192.168.7.2"}  # on eth1
PUBLIC = {"h0": "9.9.9.1", "h1": "9.9.9.2"}  # on eth0, beside the link-local address of IPv6 that the kernel makes
SIX = {"h0": "fd77::1", "h1": "fd77::2"}  # on eth0


def job(hosts, **variables):
    """Runs a program that puts, gets and reduces over these hosts."""
    command = [OSHRUN, "--hosts", ",".join(hosts), BUILD / "examples/counts"]
    return subprocess.run(command, env={**os.environ, "WEFT_SSH": f"{rig.HERE}/bin/fakessh", "WEFT_HOST_TIMEOUT": "2", **variables},
                          text=True, capture_output=True, timeout=patience(30))


def received(device):
    """Returns the bytes that h0 has received on this device."""
    text = subprocess.run(["on", "h0", "cat", f"/sys/class/net/{device}/statistics/rx_bytes"], text=True, capture_output=True)
    return int(text.stdout)


def readdress(host, *addresses):
    """Gives eth0 only these IPv4 addresses, in this order. IPv6 addresses stay."""
    verbs.within(host, "ip", "-4", "addr", "flush", "dev", "eth0")
    for address in addresses:
        verbs.within(host, "ip", "addr", "add", address, "dev", "eth0")


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
    if not UCX:
        raise Skip("there is no UCX here")
    before = received("eth1")
    result = job(("h0", "h1"), UCX_NET_DEVICES="eth1")
    assert result.returncode == 0 and received("eth1") - before > 1000, result
    result = job(("h0", "h1"), UCX_NET_DEVICES="lo")
    assert result.returncode != 0 and re.search(r"on h[01]\) cannot reach host h[01]|on h[01] cannot be reached", result.stderr), result
    result = job(("h0", "h1"), UCX_NET_DEVICES="eth7")
    assert result.returncode != 0 and "no network interface of 'eth7' is up" in result.stderr, result


@case("of the addresses of an interface that one is used by which hosts have reached each other, under every launcher")
def several_addresses():
    for number, host in enumerate(SECOND):
        readdress(host, "10.99.0.1/32", f"172.31.{number}.1/24", f"{rig.address_of(host)}/24")
    result = job(SECOND)
    assert result.returncode == 0 and "right" in result.stdout, result
    result = job(SECOND, WEFT_FAN_OUT="1")
    assert result.returncode == 0 and "right" in result.stdout, result
    Processes(["h0", "h1"], "work").expect(0)
    if UCX:
        result = job(SECOND, WEFT_ENGINE="ucx")
        assert result.returncode != 0 and "UCX would listen at 10.99.0.1, the first address of eth0" in result.stderr, result
    for host in SECOND:
        readdress(host, f"{rig.address_of(host)}/24")


@case("an address of IPv6 may be used, also in the first seconds in which the kernel looks for others that have it")
def first_seconds():
    for host, address in SIX.items():
        verbs.within(host, "ip", "addr", "add", f"{address}/64", "dev", "eth0")
    subprocess.run(["ip", "addr", "add", "fd77::254/64", "dev", "bridge", "nodad"], check=True)
    with tempfile.NamedTemporaryFile("w", prefix="weft-ssh-") as script:  # connects by IPv4, which is available at once
        script.write('host=h$((${1##*[.:]} - 1)); shift; exec fakessh $host "$@"\n')
        script.flush()
        result = job(SIX.values(), WEFT_SSH=f"sh {script.name}")
        mixed = job([rig.address_of("h0"), SIX["h1"]], WEFT_SSH=f"sh {script.name}")
    assert result.returncode == 0 and "right" in result.stdout, result
    assert mixed.returncode != 0 and "has an address that this host's address cannot reach (one is IPv4" in mixed.stderr, mixed


@case("a public address is refused with a line that says what to do, unless the network is trusted")
def public():
    for host, address in PUBLIC.items():
        readdress(host, f"{address}/24")
    subprocess.run(["ip", "addr", "add", "9.9.9.254/24", "dev", "bridge"], check=True)
    result = job(PUBLIC.values())
    assert result.returncode != 0, result
    assert "eth0 has the public address 9.9.9.1" in result.stderr and "WEFT_FAR_NETWORK=trusted" in result.stderr, result
    assert ",," not in result.stderr, result
    for host in PUBLIC:  # a private network would be used as well, by a connection that finds the first address busy
        verbs.within(host, "ip", "link", "set", "eth1", "down")
    by_id = Processes(["h0", "h1"], "work").end()
    for host in PUBLIC:
        verbs.within(host, "ip", "link", "set", "eth1", "up")
    assert 0 not in by_id.status.values(), (by_id.status, by_id.said)
    assert any("eth0 has the public address 9.9.9." in err for _, err in by_id.said.values()), by_id.said
    for variables in ({"WEFT_FAR_NETWORK": "trusted"}, *([{"UCX_NET_DEVICES": "eth1"}] if UCX else [])):
        result = job(PUBLIC.values(), **variables)
        assert result.returncode == 0, result


main()
