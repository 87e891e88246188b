#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Junk in the environment, in messages and in the control page ends the job with a clear line, never with a crash."""
from harness import PE, case, main, patience, run, settled_leftovers
import os
import subprocess
import sys

JOB = {"WEFT_PE": "0", "WEFT_NPES": "2", "WEFT_HUB_FD": "5", "WEFT_CONTROL_FD": "6", "WEFT_LIFE_FD": "7"}


def alone(environment, *verbs):
    return subprocess.run([PE, *(verbs or ["join", "print"])], text=True, capture_output=True, timeout=patience(5),
                          env={**os.environ, **environment})


@case("without a launcher a process is a job of its own, and may join again and again")
def no_launcher():
    result = alone({}, "join", "exchange:5", "fork_meddler", "leave", "rejoin:3", "join", "global_exit:3")
    assert result.returncode == 3, result


@case("junk in the environment is refused in one line that names it")
def environment():
    for name in JOB:
        for value in ("", "x", "-1", "99999999999999999999", "1e3", " 1", "2147483648"):
            result = alone({**JOB, name: value})
            assert result.returncode == 71 and name in result.stderr, (name, value, result)
            assert result.stderr.count("\n") == 1, result.stderr
    for name in JOB:
        result = alone({name: JOB[name]})
        assert result.returncode == 71 and result.stderr.count("\n") == 1, (name, result)
    result = alone({**JOB, "WEFT_PE": "2"})
    assert result.returncode == 71 and "WEFT_PE=2" in result.stderr, result


@case("descriptors that are something else are refused")
def descriptors():
    result = alone({**JOB, "WEFT_HUB_FD": "0", "WEFT_LIFE_FD": "1"})
    assert result.returncode == 71 and "is not oshrun's socket any more" in result.stderr, result
    swapped = "t=$WEFT_HUB_FD; export WEFT_HUB_FD=$WEFT_LIFE_FD WEFT_CONTROL_FD=$t; exec " + PE + " join"
    run("-n", 1, "sh", "-c", swapped).expect(71, "is not a control page")
    run("-n", 2, "sh", "-c", f"exec env WEFT_NPES=3 {PE} join").expect(71, "control page is for 2 PEs, and this job has 3")


@case("a wrapper that closes descriptors is told")
def closed():
    script = f"import subprocess,sys; sys.exit(subprocess.run(['{PE}','join']).returncode)"
    run("-n", 2, sys.executable, "-c", script).expect(71, "a wrapper that closes descriptors")


@case("a second process that wants to be the same PE is refused")
def twice():
    twins = f"{PE} join sleep_ms:1700 leave & sleep 0.2; {PE} join; echo $?; wait"
    result = run("-n", 1, "sh", "-c", twins).expect(0, "start this program itself with oshrun, or set WEFT_LAUNCHER", seconds_max=4)
    assert result.out == "71\n", result.out


@case("junk messages end the job with a line that names the sender")
def messages():
    for kind in range(6):
        result = run("-n", 3, PE, "join", "exchange", f"1@junk:{kind}", "exchange").expect(70, "oshrun: PE 1 (pid ")
        assert "sent a" in result.err, result.err
    run("-n", 2, PE, f"0@junk:1", "hang").expect(70, "oshrun: PE 0 (pid ")


@case("two contributions to one exchange, or one of another size, end the job")
def contributions():
    run("-n", 2, PE, "join", "exchange", "1@give_other_size", "exchange").expect(70, "differs in size")


@case("a PE that overwrites the control page can crash nobody but the job")
def page():
    for pe in (0, 1):
        result = run("-n", 3, PE, "join", "exchange", f"{pe}@corrupt_page", "1@raise:9", "exchange")
        assert result.status in (137, 70), (result.status, result.err)
        assert result.seconds < 2 and not settled_leftovers(), (result.seconds, settled_leftovers())


@case("the death of a PE that has overwritten its own state word is a death")
def state_word():
    for state in (0, 1, 7, -1):
        run("-n", 3, PE, "join", "exchange", f"1@state:{state}", "1@_exit:3", "exchange").expect(3, "PE 1")
        run("-n", 2, PE, "join", "exchange", f"1@state:{state}", "1@raise:9", "hang").expect(137, "PE 1")
        below_shell = f"{PE} join exchange 1@state:{state} clone_sleeper:20 1@raise:9 hang; sleep 30"
        run("-n", 2, "sh", "-c", below_shell).expect(70, "PE 1")


@case("a PE passes on no descriptor of the launcher's to programs that it starts")
def passed_on():
    run("-n", 2, PE, "join", "exchange", "descriptors", "leave").expect(0, out="inheritable 0\n" * 2)


main()
