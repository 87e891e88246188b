#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""More hosts than oshrun starts itself: relays on some hosts start the others, and forward their messages. Results are
the same as without relays, and a lost relay takes the hosts below it with it."""
import contextlib
import os
import re
import signal
import sys
import time

import rig
import verbs

COUNT = 12  # with three below each node: relays on h0, h4 and h8
rig.enter(COUNT)
sys.path.insert(0, str(rig.HERE.parent / "launch"))
from harness import ENVIRONMENT, PE, SILENCE, Result, case, leftovers, main, patience, read_numbers, start, wait_until  # noqa: E402

ENVIRONMENT.update(WEFT_SSH=str(rig.HERE / "bin/fakessh"), WEFT_HOST_TIMEOUT=str(SILENCE), WEFT_FAN_OUT="3")
HOSTS = rig.names_of(COUNT)
ALL = ["--hosts", ",".join(HOSTS)]
MEET = [PE, "join", "exchange:2"]


def over(*words, text=None, hosts=ALL):
    result = Result(start(*hosts, *words, **({} if text is None else {"stdin": -1})), text, 20)
    nothing_left()
    return result


def nothing_left():
    wait_until(lambda: not leftovers(), 2 * SILENCE + 2, f"nothing runs any more: {leftovers()}")


def launchers(host):
    """Returns the launchers of a host: relays first, then the daemon."""
    return sorted(pid for pid, line in verbs.processes(host) if re.fullmatch(r"\S*/oshrun --daemon", line))


@contextlib.contextmanager
def running(*words):
    job = start(*ALL, PE, "join", "exchange", "pid", *words)
    yield job, read_numbers(job, "pid", COUNT)
    job.kill()


@case("PEs of all hosts meet, write, read and end, over relays below relays, too")
def meet():
    for fan_out in "3", "2", "1":
        ENVIRONMENT["WEFT_FAN_OUT"] = fan_out
        result = over(*MEET, "leave", "print").expect(0, seconds_max=20)
        assert sorted(result.out.split("\n")[:-1]) == sorted(f"PE {pe}" for pe in range(COUNT)), result.out
    ENVIRONMENT["WEFT_FAN_OUT"] = "3"
    over(*MEET, "leave", "11@exit:7").expect(7, "oshrun: PE 11 (pid ", seconds_max=20)
    result = over("--tag-host", "sh", "-c", "cat | wc -c", text="y" * 300000).expect(0, seconds_max=20)
    assert sorted(result.out.splitlines()) == sorted(f"[{pe} h{pe}] {0 if pe else 300000}" for pe in range(COUNT)), result.out


@case("relays are where they are wanted, and signals go through them")
def shape():
    with running("exchange", "0@sleep_ms:60000", "exchange") as (job, _):
        assert [len(launchers(host)) for host in HOSTS] == [2, 1, 1, 1] * 3, [launchers(host) for host in HOSTS]
        job.terminate()
        Result(job).expect(143, seconds_max=8)
    nothing_left()


@case("PEs of a host without relay and of one with are named when they die")
def death():
    for pe in 0, 5, 8, 11:
        result = over(*MEET, f"{pe}@raise:9", "exchange").expect(137, f"oshrun: PE {pe} (pid ", seconds_max=20)
        assert f" on h{pe}) was killed by signal 9" in result.err and result.err.count("; ending the job") == 1, result.err


def lose(what, host, *back):
    """The job names the host in the promised time, and nothing is left."""
    with running("exchange", "0@sleep_ms:60000", "exchange") as (job, _):
        what()
        begin = time.monotonic()
        result = Result(job)
        pe = int(host[1:])
        assert result.status == 70 and f"oshrun: host {host} (PE {pe}) does not answer (" in result.err, (result.status, result.err)
        assert time.monotonic() - begin < patience(SILENCE + 4), time.monotonic() - begin
        for undo in back:
            undo()
    nothing_left()


@case("a daemon below a relay that is killed ends the job, and one beside it")
def daemon():
    lose(lambda: os.kill(launchers("h6")[0], signal.SIGKILL), "h6")
    lose(lambda: os.kill(launchers("h4")[1], signal.SIGKILL), "h4")


@case("a relay that is killed takes what is below it along")
def relay():
    lose(lambda: os.kill(launchers("h4")[0], signal.SIGKILL), "h4")


@case("a cable of a relay's host or of one below it is pulled, or the host freezes")
def silent():
    for host in "h8", "h10":
        lose(lambda: verbs.link(host, "down"), host, lambda: verbs.link(host, "up"))
        lose(lambda: verbs.freeze(host), host, lambda: verbs.thaw(host))


@case("a front that is killed takes all along, and one that is stopped does not")
def front():
    with running("exchange", "0@sleep_ms:60000", "exchange") as (job, _):
        job.send_signal(signal.SIGSTOP)
        time.sleep(2 * SILENCE)
        assert all(launchers(host) for host in HOSTS)
        job.kill()
    nothing_left()


@case("a host that cannot be started is named, wherever it is, and nothing runs on the others")
def refused():
    for place in 1, 4, 7, 11:
        hosts = HOSTS[:place] + ["nowhere"] + HOSTS[place:]
        result = over("echo", "x", hosts=["--hosts", ",".join(hosts)]).expect(71, out="", seconds_max=20)
        assert "oshrun: cannot start on host nowhere: '" in result.err, result.err


main()
