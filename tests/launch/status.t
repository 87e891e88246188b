#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The command line of oshrun, and its exit status."""
from harness import BUILD, EXCHANGE, PE, Result, case, leftovers, main, patience, preloaded, run, start, wait_until
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

ENDING = str(BUILD / "tests/boot/ending")


@case("programs that never call shmem_init just run")
def plain():
    result = run("-n", 3, "sh", "-c", "echo $WEFT_PE of $WEFT_NPES").expect(0)
    assert sorted(result.out.split("\n")) == ["", "0 of 3", "1 of 3", "2 of 3"], result.out


@case("one PE is the default, -np is -n, -- ends the options")
def counts():
    run("sh", "-c", "echo $WEFT_NPES").expect(0, out="1\n")
    run("-np", 1, "--", "sh", "-c", "echo $WEFT_NPES").expect(0, out="1\n")
    run("-n=1", "echo", "-n=5").expect(0, out="-n=5\n")


@case("wrong options are named, with status 2")
def wrong():
    run("--nonsense", "true").expect(2, "unknown option --nonsense")
    run("-x", "PATH").expect(2, "no program")
    run("-n").expect(2, "after -n")
    for number in ("0", "-1", "x", "", "1x", "99999999999999999999", "4097"):
        run("-n", number, "true").expect(2, f"-n {number}: ")
    run("-n", "2").expect(2, "no program")
    run("--bind-to", "moon", "true").expect(2, "moon")
    run("--help=yes", "true").expect(2, "--help")
    run().expect(2, "no program")


@case("--help and --version answer on stdout")
def answers():
    assert run("--help").expect(0).out.startswith("usage: oshrun")
    assert run("--version").expect(0).out.startswith("oshrun (Weft) ")


@case("a program that cannot be run: one line, 127 or 126")
def not_run():
    result = run("-n", 4, "no-such-program").expect(127)
    assert result.err == "oshrun: cannot run 'no-such-program': No such file or directory\n", result.err
    far_down = "/" + "no/" * 1000 + "program"
    result = run("-n", 3, far_down).expect(127)
    assert result.err == f"oshrun: cannot run '{far_down}': No such file or directory\n", result.err
    with tempfile.NamedTemporaryFile() as file:
        result = run("-n", 2, file.name).expect(126)
        assert result.err == f"oshrun: cannot run '{file.name}': Permission denied\n", result.err


@case("a program of the working folder that was named without ./ is offered")
def beside():
    with tempfile.TemporaryDirectory() as folder:
        for name, mode in (("beside-me", 0o755), ("no-program", 0o644)):
            with open(os.path.join(folder, name), "w") as file:
                os.fchmod(file.fileno(), mode)
        missing = "No such file or directory"
        run("-n", 2, "-wdir", folder, "beside-me").expect(127, err=f"oshrun: cannot run 'beside-me': {missing}; did you mean ./beside-me?\n")
        run("-n", 2, "-wdir", folder, "no-program").expect(127, err=f"oshrun: cannot run 'no-program': {missing}\n")


@case("a PE that a closed pipe ends after shmem_finalize is not reported; the status is that of the signal")
def pipe_after_leave():
    meet = ("-n", 2, PE, "join", "exchange", "leave")
    result = run(*meet, f"0@raise:{signal.SIGPIPE:d}").expect(128 + signal.SIGPIPE)
    assert not result.err, result.err
    run(*meet, f"0@raise:{signal.SIGTERM:d}").expect(128 + signal.SIGTERM, "was killed by signal 15 after shmem_finalize")


@case("a PE's status after leaving is the job's, and no death")
def status_after_leave():
    result = run("-n", 3, PE, "join", "exchange", "leave", "1@exit:5", "sleep_ms:100", "print").expect(5)
    assert sorted(result.out.split()) == ["0", "2", "PE", "PE"], result.out
    assert re.fullmatch(r"oshrun: PE 1 \(pid \d+\) exited with status 5\n", result.err), result.err
    result = run("-n", 3, PE, "join", "exchange", "leave", "exit:1").expect(1, "exited with status 1; 2 more did not")
    run("-n", 1, PE, "join", "exchange", "leave", "exit:1").expect(1, err="")


@case("the first status that is not 0 counts")
def first_status():
    run("-n", 3, PE, "join", "exchange", "leave", "1@exit:5", "sleep_ms:100", "2@exit:6").expect(5)


EXITED = r"PE 1 \(pid \d+\) exited with status 3 without shmem_finalize; "


@case("exit with a status while others wait, or compute, ends the job with it, and is named")
def status_of_exit():
    result = run("-n", 2, ENDING, "exit", 3).expect(3)
    assert len(re.findall(f"oshrun: {EXITED}ending the job", result.err)) == 1, result.err
    assert re.search(rf"weft: PE 0 \(pid \d+\): in shmem_barrier_all: {EXITED}leaving", result.err), result.err
    assert "weft: PE 1" not in result.err, result.err
    result = run("-n", 3, ENDING, "exit", 3, "compute").expect(3)
    assert re.fullmatch(f"oshrun: {EXITED}ending the job\n", result.err), result.err


@case("with WEFT_EXIT=wait, and after shmem_finalize, a status ends nothing, unless others wait; nonsense is refused")
def status_that_waits():
    waits = ("-x", "WEFT_EXIT=wait")
    for options, how in ((waits, "exit"), ((), "finalize_exit")):
        result = run(*options, "-n", 2, ENDING, how, 3, "return").expect(3)
        assert "returns 0" in result.out and re.fullmatch(r"oshrun: PE 1 \(pid \d+\) exited with status 3\n", result.err), (result.out, result.err)
    result = run(*waits, "-n", 2, ENDING, "exit", 3).expect(3)
    assert re.search(rf"weft: PE 0 \(pid \d+\): in shmem_barrier_all: {EXITED}leaving", result.err), result.err
    run("-x", "WEFT_EXIT=never", "-n", 1, ENDING).expect(71, "WEFT_EXIT is 'never': set it to end or wait")


OTHER = "int my_pe; void shmem_init(void) { my_pe = 0; }"
USER = """
#include <stdlib.h>
void shmem_init(void);
int main(int argc, char **argv) {
    if (argc < 2 || atoi(argv[1]) == atoi(getenv("WEFT_PE")))
        shmem_init();
    return 0;
}
"""


@case("a program of another OpenSHMEM library ends well, and a line says why it did not join; so where others wait")
def other_library():
    with tempfile.TemporaryDirectory() as folder:
        def build(source, *arguments):
            subprocess.run(["cc", "-x", "c", "-", *arguments], cwd=folder, input=source, text=True, check=True)
        build(OTHER, "-shared", "-fPIC", "-o", "libother.so")
        build(USER, "-o", "program", "-L.", "-lother", "-Wl,-rpath,$ORIGIN")
        said = f"oshrun: '{folder}/program' calls the shmem_init of another OpenSHMEM library"
        for below in ([], ["env"]):
            result = run("-n", 2, *below, f"{folder}/program").expect(0, said)
            assert result.err.count("\n") == 1, result.err
        result = run("-n", 2, "sh", "-c", f"test $WEFT_PE = 0 && exec {PE} join exchange; exec {folder}/program").expect(
            70, "PE 1 ")
        assert "ended well without ever calling Weft's shmem_init; ending the job" in result.err, result.err
        result = run("-n", 1, PE, "join", "exchange", ":", f"{folder}/program").expect(70, said)
    for program in (["true"], ["sh", "-c", "true"], [PE, "npes"]):
        assert run("-n", 2, *program).expect(0).err == "", program


@case("a signal after leaving: 128 + s, named, and no death")
def signal_after_leave():
    result = run("-n", 2, PE, "join", "exchange", "leave", "1@raise:11", "sleep_ms:100", "print").expect(139)
    assert "PE 0" in result.out and "killed by signal 11" in result.err, (result.out, result.err)


@case("shmem_global_exit decides, also with 0, also for PEs that compute or never joined")
def global_exit():
    for status in (0, 1, 42, 255):
        result = run("-n", 3, PE, "join", "exchange", f"1@global_exit:{status}", "2@spin", "hang")
        result.expect(status)
        assert result.err == "", result.err
    run("-n", 2, PE, "0@hang", "join", "global_exit:7").expect(7)
    named = run("-v", "-n", 2, PE, "join", "exchange", "1@global_exit:7", "hang").expect(7)
    assert re.search(r"oshrun: PE 1 \(pid \d+\) called shmem_global_exit\(7\); ending the job", named.err), named.err
    run("-n", 3, PE, "join", "1@sleep_ms:50", "1@global_exit:8", "exchange").expect(8, err="")


@case("everybody calls shmem_global_exit")
def global_exit_all():
    run("-n", 8, PE, "join", "exchange", "global_exit:3").expect(3)


@case("a PE that fails with its own message: its status, and nothing added")
def failure():
    result = run("-n", 2, PE, "join", "exchange", "1@fail:71", "hang").expect(71)
    assert "oshrun" not in result.err and "it failed" in result.err, result.err


@case("children get the dispositions, mask and limits that oshrun was started with")
def inherited():
    script = "import signal,resource; print(signal.pthread_sigmask(0,[]), signal.getsignal(13), resource.getrlimit(7)[0])"
    lower = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (333, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    plain = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, preexec_fn=lower).stdout
    assert "333" in plain, plain
    run("-n", 1, sys.executable, "-c", script, preexec_fn=lower).expect(0, out=plain)


@case("an ignored SIGCHLD stays ignored in the PEs, which are counted all the same")
def ignored_sigchld():
    script = "import signal,sys; sys.exit(4 if signal.getsignal(17) == signal.SIG_IGN else 5)"
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    run("-n", 2, sys.executable, "-c", script, preexec_fn=ignore).expect(4)


@case("few descriptors are enough for few PEs")
def few_descriptors():
    run("-n", 2, PE, "join", "exchange:3", "leave",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))).expect(0)
    run("-n", 8, EXCHANGE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (250, 250))).expect(0)
    result = run("-n", 40, "true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    result.expect(71, "oshrun: cannot start: socketpair, for PE ")
    result.expect(71, ": Too many open files; ulimit -n is 40: raise it\n")


@case("what keeps oshrun from starting is named: the call, its purpose, the limit with its number, the remedy")
def starting():
    with preloaded("#include <errno.h>\nint signalfd(int fd, const void *mask, int flags) { errno = EPERM; return -1; }") as below:
        Result(start("true", below=below)).expect(
            71, "oshrun: cannot start: signalfd, to read signals: Operation not permitted; a sandbox (seccomp) or the kernel forbids")
    with preloaded("#include <errno.h>\nint socketpair(int d, int t, int p, int fds[2]) { errno = ENOSYS; return -1; }") as below:
        Result(start("true", below=below)).expect(71, "cannot start: socketpair, for PE 0: Function not implemented; a sandbox (seccomp)")
    run("true", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))).expect(
        71, "memfd_create, for the control page of 1 PEs: File too large; the limit on the size of a file is 0 bytes: raise it (ulimit -f)")
    with tempfile.TemporaryDirectory() as folder:
        gone = ["sh", "-c", f'mkdir {folder}/gone; cd {folder}/gone; rmdir {folder}/gone; exec "$@"', "sh", "env", "WEFT_SSH=false"]
        Result(start("--hosts", "aa,bb", "true", below=gone)).expect(71, "cannot start: getcwd: the folder in which oshrun was called is gone")


@case("a command that does not wait for its program in the background is named, and its status is kept")
def background():
    line = r"oshrun: the process of PE 0 \(pid \d+\) has ended before shmem_init, and a process that it has started continues alone.*\n"
    result = run("-n", 2, "sh", "-c", "sleep 2 >/dev/null 2>&1 & exit 0")
    assert result.status == 0 and result.seconds < patience(1.5), (result.status, result.seconds)
    assert re.fullmatch(line, result.err), result.err
    # A process that continues alone is no leftover of the job, but the next case would report it.
    wait_until(lambda: not leftovers(), 5, "what went on alone is over")
    run("-n", 2, "sh", "-c", "sleep 0.1 & wait").expect(0, err="")
    run("-n", 2, "sh", "-c", "true & exit 0").expect(0)


@case("PEs have processors of their own when there are enough, unless told otherwise")
def binding():
    def masks(*options):
        script = "import os;os.write(1,b'%a\\n' % sorted(os.sched_getaffinity(0)))"
        return sorted(run(*options, sys.executable, "-c", script).expect(0).out.split("\n"))[1:]
    allowed = sorted(os.sched_getaffinity(0))
    assert masks("-n", len(allowed)) == [f"[{cpu}]" for cpu in allowed], masks("-n", len(allowed))
    unbound = masks("-n", 2, "--bind-to", "none"), masks("-n", len(allowed) + 1)
    assert unbound == ([str(allowed)] * 2, [str(allowed)] * (len(allowed) + 1)), unbound
    run("-n", len(allowed) + 1, "--bind-to", "core", "true").expect(0, "not binding")


main()
