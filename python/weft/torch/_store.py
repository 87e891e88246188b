# SPDX-License-Identifier: BSD-3-Clause
"""The store through which ranks of torch.distributed meet that Weft's launcher has started. PE 0 serves one of
PyTorch's stores at one address: 127.0.0.1 on one host, PE 0's address in the job's network over several hosts.
PyTorch's transports use that network, too.
"""
import fcntl
import ipaddress
import os
import pathlib
import socket
import struct

import torch.distributed as dist

import weft

_PLACE_BYTES = 64  # of an address and a port
_SIOCGIFADDR = 0x8915
_GLOBAL_SCOPE = "00"


def store():
    """Returns a store for all PEs, on a port that the system chooses. Collective over the job."""
    server, place = None, bytearray(_PLACE_BYTES)
    if weft.my_pe() == 0:
        address = _address()
        server, port = _serve(address)
        place[:] = f"{address} {port}".encode().ljust(_PLACE_BYTES)
    weft.broadcast(place)
    address, port = place.decode().split()
    return server or dist.TCPStore(address, int(port), weft.n_pes(), False)


def use_network():
    """Sets the network interface for Gloo and NCCL. They would take the address of the host's name, which is 127.0.1.1
    on many hosts."""
    interface = weft.network()
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={interface}")


def _serve(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family)
    port = listener.getsockname()[1]
    server = dist.TCPStore(address, port, weft.n_pes(), True, wait_for_workers=False,
                           master_listen_fd=listener.detach())
    return server, port


def _address():
    interface = weft.network()
    if interface is None:
        return "127.0.0.1"
    found = _address4(interface) or _address6(interface)
    if not found:
        raise RuntimeError(f"init_process_group: the network interface of this job, '{interface}', has no address: pass "
                           "a store, rank and world_size to torch.distributed.init_process_group()")
    return found


def _address4(interface):
    """Returns the interface's IPv4 address, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("16s24x", interface.encode()))
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def _address6(interface):
    """Returns the interface's first IPv6 address that can be reached from other networks, or None."""
    for line in pathlib.Path("/proc/net/if_inet6").read_text(encoding="ascii").splitlines():
        address, _, _, scope, _, name = line.split()
        if name == interface and scope == _GLOBAL_SCOPE:
            return str(ipaddress.IPv6Address(bytes.fromhex(address)))
    return None
