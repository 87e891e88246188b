# SPDX-License-Identifier: BSD-3-Clause
"""Ways to start a job without oshrun: launchers that may be installed, and substitutes for those that are not. A way is
a function (npes, command) -> Job."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "launch"))
import harness  # noqa: E402

# Variables of a launcher that may have started the tests themselves.
FOREIGN = ("WEFT_", "PMI", "PMIX_", "OMPI_", "SLURM_", "TORCHELASTIC_", "MASTER_", "RANK", "WORLD_SIZE", "LOCAL_")
CLEAN = {name: value for name, value in harness.ENVIRONMENT.items()
         if not name.startswith(FOREIGN) or name.startswith("WEFT_TEST_")}


class Job:
    """The processes of one job; wait() sets the lists status, out and err, with an element per process."""

    def __init__(self, processes, after=lambda: None):
        self.processes = processes
        self.after = after

    def wait(self, seconds_max=10):
        begin = time.monotonic()
        texts = [None] * len(self.processes)

        def read(i):
            texts[i] = self.processes[i].communicate()

        readers = [threading.Thread(target=read, args=(i,), daemon=True) for i in range(len(self.processes))]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(max(0, begin + harness.patience(seconds_max) - time.monotonic()))
        if any(reader.is_alive() for reader in readers):
            running = harness.leftovers()
            for process in self.processes:
                process.kill()
            raise AssertionError(f"not over after {seconds_max} s: {running}; {texts}")
        self.seconds = time.monotonic() - begin
        self.status = [process.returncode for process in self.processes]
        self.out, self.err = ([text[i] for text in texts] for i in (0, 1))
        self.after()
        return self

    def expect(self, status, err=None, seconds_max=10):
        self.wait(seconds_max)
        wanted = status if isinstance(status, list) else [status] * len(self.processes)
        assert self.status == wanted, f"status {self.status}, not {wanted}: {self.out} {self.err}"
        assert err is None or any(err in text for text in self.err), f"stderr lacks '{err}': {self.err}"
        left = harness.settled_leftovers()
        assert not left, f"still running: {left}"
        return self


def spawn(command, environment, **options):
    return subprocess.Popen([str(word) for word in command], text=True, env={**CLEAN, **environment},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def listeners(process):
    """Returns the names of the abstract sockets of this process; others on this host may belong to another test."""
    own = set()
    with contextlib.suppress(OSError):  # it has ended
        for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                own.add(os.readlink(fd))
    with open("/proc/net/unix") as sockets:
        return {fields[7][1:] for fields in map(str.split, sockets)
                if len(fields) > 7 and fields[7].startswith("@weft-") and f"socket:[{fields[6]}]" in own}


# --- Variables -----------------------------------------------------------------------------------

RUN = uuid.uuid4().hex  # distinguishes jobs if two runs of one test are on one host


def torchrun_variables(npes, port, run=RUN):
    return [{"RANK": str(pe), "WORLD_SIZE": str(npes), "LOCAL_RANK": str(pe), "LOCAL_WORLD_SIZE": str(npes),
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": run,
             "TORCHELASTIC_RESTART_COUNT": "0"} for pe in range(npes)]


def torchrun(npes, command, **more):
    run = uuid.uuid4().hex
    return Job([spawn(command, {**variables, **more}) for variables in torchrun_variables(npes, 29500, run)])


def slurm_variables(npes, job):
    return [{"SLURM_PROCID": str(pe), "SLURM_NTASKS": str(npes), "SLURM_STEP_NUM_TASKS": str(npes),
             "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": job, "SLURM_STEP_ID": "0"} for pe in range(npes)]


def slurm(npes, command):
    job = str(uuid.uuid4().int % 10**9)
    return Job([spawn(command, variables) for variables in slurm_variables(npes, job)])


# --- Process managers ----------------------------------------------------------------------------

class Manager:
    """A process manager of one job: answers PMI requests, with one thread per PE."""

    def __init__(self, npes, dialect):
        self.npes, self.dialect = npes, dialect
        self.store = {}
        self.fence = threading.Barrier(npes)
        self.finalized = 0
        self.troubles = []

    def serve(self, pe, connection):
        try:
            with connection, connection.makefile("rb") as questions:
                self.dialect(self, pe, connection, questions)
        except (OSError, threading.BrokenBarrierError) as trouble:
            self.troubles.append(trouble)
        finally:
            if self.finalized < self.npes:
                self.fence.abort()

    def start(self, pe, connection):
        threading.Thread(target=self.serve, args=(pe, connection), daemon=True).start()


def words(line, separator):
    return dict(word.split("=", 1) for word in line.strip(separator + "\n").split(separator))


def pmi1(manager, pe, connection, questions):
    """As in MPICH's simple_pmi.c; blanks between the words."""
    for line in questions:
        said = words(line.decode(), " ")
        command = said["cmd"]
        if command == "init":
            answer = f"cmd=response_to_init rc={0 if said['pmi_version'] == '1' else -1} pmi_version=1 pmi_subversion=1"
        elif command == "get_my_kvsname":
            answer = "cmd=my_kvsname kvsname=kvs_7_0"
        elif command == "put":
            assert said["kvsname"] == "kvs_7_0", said
            manager.store[said["key"]] = said["value"]
            answer = "cmd=put_result rc=0 msg=success"
        elif command == "barrier_in":
            manager.fence.wait()
            answer = "cmd=barrier_out"
        elif command == "get":
            found = manager.store.get(said["key"])
            answer = f"cmd=get_result rc=0 msg=success value={found}" if found else "cmd=get_result rc=-1 msg=unknown"
        elif command == "finalize":
            manager.finalized += 1
            answer = "cmd=finalize_ack"
        else:
            answer = "cmd=what rc=-1"
        connection.sendall((answer + "\n").encode())


def pmi2(manager, pe, connection, questions):
    """As Slurm's plugin answers: the return code first."""
    first = words(questions.readline().decode(), " ")
    assert first == {"cmd": "init", "pmi_version": "2", "pmi_subversion": "0"}, first
    connection.sendall(b"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n")
    while length := questions.read(6):
        said = words(questions.read(int(length)).decode(), ";")
        command = said["cmd"]
        answer = f"cmd={command}-response;rc=0;"
        if command == "fullinit":
            answer += f"pmi-version=2;pmi-subversion=0;rank={pe};size={manager.npes};appnum=-1;debugged=FALSE;pmiverbose=FALSE;"
        elif command == "job-getid":
            answer += "jobid=77.0;"
        elif command == "kvs-put":
            manager.store[said["key"]] = said["value"]
        elif command == "kvs-fence":
            manager.fence.wait()
        elif command == "kvs-get":
            assert said["jobid"] == "77.0", said
            found = manager.store.get(said["key"])
            answer += f"found=TRUE;value={found};" if found else "found=FALSE;"
        elif command == "finalize":
            manager.finalized += 1
        connection.sendall(f"{len(answer):6d}{answer}".encode())


def managed(npes, command, dialect, **more):
    """PEs whose PMI_FD is connected to a manager of this dialect."""
    manager = Manager(npes, dialect)
    processes = []
    for pe in range(npes):
        ours, theirs = socket.socketpair()
        manager.start(pe, ours)
        processes.append(spawn(command, {"PMI_FD": str(theirs.fileno()), "PMI_RANK": str(pe), "PMI_SIZE": str(npes), **more},
                               pass_fds=[theirs.fileno()]))
        theirs.close()
    job = Job(processes)
    job.manager = manager
    return job


def pmi1_manager(npes, command, **more):
    return managed(npes, command, pmi1, **more)


def pmi2_manager(npes, command, **more):
    return managed(npes, command, pmi2, WEFT_LAUNCHER="pmi2", **more)


def pmi1_port(npes, command):
    """PEs that connect to a port and get their numbers there."""
    manager = Manager(npes, pmi1)
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        for _ in range(npes):
            connection, _ = listener.accept()
            line = b""
            while not line.endswith(b"\n"):
                line += connection.recv(1)
            pe = int(words(line.decode(), " ")["pmiid"])
            connection.sendall(f"cmd=initack rc=0\ncmd=set size={npes}\ncmd=set rank={pe}\ncmd=set debug=0\n".encode())
            manager.start(pe, connection)

    threading.Thread(target=accept, daemon=True).start()
    port = listener.getsockname()[1]
    return Job([spawn(command, {"PMI_PORT": f"127.0.0.1:{port}", "PMI_ID": str(pe)}) for pe in range(npes)],
               after=listener.close)


# --- Launchers that may be installed -------------------------------------------------------------

def is_open_mpi(program):
    if not shutil.which(program):
        return False
    return "Open MPI" in subprocess.run([program, "--version"], capture_output=True, text=True).stdout


OPEN_MPI = next((name for name in ("mpirun.openmpi", "mpirun") if is_open_mpi(name)), None)
HYDRA = shutil.which("mpiexec.hydra")


def mpirun(npes, command):
    """Open MPI's, over PMIx; as root, or with few processors, it needs additional options."""
    return Job([spawn([OPEN_MPI, "--oversubscribe", "-n", npes, *command],
                      {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})])


def hydra(npes, command):
    return Job([spawn([HYDRA, "-n", npes, *command], {})])


def hydra_pmi2(npes, command):
    return Job([spawn([HYDRA, "-n", npes, *command], {"WEFT_LAUNCHER": "pmi2"})])


def hydra_port(npes, command):
    return Job([spawn([HYDRA, "-pmi-port", "-n", npes, *command], {})])


PRETENDED = {"torchrun's variables": torchrun, "Slurm's variables": slurm, "a PMI-1 manager": pmi1_manager,
             "a PMI-2 manager": pmi2_manager, "a PMI-1 manager behind a port": pmi1_port}
INSTALLED = {"Open MPI's mpirun (PMIx)": (OPEN_MPI, mpirun), "hydra (PMI-1)": (HYDRA, hydra),
             "hydra (PMI-2)": (HYDRA, hydra_pmi2), "hydra behind a port": (HYDRA, hydra_port)}
