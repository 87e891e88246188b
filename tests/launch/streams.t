#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Standard streams: the PE that reads stdin, and the tags of --tag-output."""
from harness import OSHRUN, PE, Result, case, leftovers, main, patience, run, start
import subprocess
import time


@case("PE 0 reads the standard input, the others nothing")
def standard_input():
    result = run("-n", 3, PE, "input", text="hello").expect(0)
    assert sorted(result.out.split("\n")[:3]) == ["input 0", "input 0", "input 5"], result.out


@case("closed standard streams do no harm")
def closed_streams():
    script = f"{OSHRUN} -n 3 {PE} join exchange:3 leave print 0<&- 2>&-; echo $? >&2; exec >&-; {OSHRUN} -n 3 --tag-output {PE} join exchange leave; echo $? >&2"
    result = Result(subprocess.Popen(["sh", "-c", script], text=True, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    assert result.err == "0\n0\n" and result.out.count("PE") == 3, (result.out, result.err)


@case("a large input passes whole")
def large_input():
    text = "line\n" * 200000
    assert run("-n", 2, "wc", "-c", text=text).expect(0).out.split() in (["1000000", "0"], ["0", "1000000"])


@case("every line gets its PE, also the last without an end")
def tags():
    result = run("-n", 3, "--tag-output", "sh", "-c", "echo one; echo; printf 'last %s' $WEFT_PE").expect(0)
    lines = result.out.split("\n")
    assert lines.pop() == "", result.out
    for pe in range(3):
        own = [line for line in lines if line.startswith(f"[{pe}] ")]
        assert own == [f"[{pe}] one", f"[{pe}] ", f"[{pe}] last {pe}"], own
    assert len(lines) == 9, lines


@case("stdout and stderr stay apart")
def two_streams():
    result = run("-n", 2, "--tag-output", "sh", "-c", "echo out; echo err >&2").expect(0)
    assert sorted(result.out.split("\n"))[1:] == ["[0] out", "[1] out"], result.out
    assert sorted(result.err.split("\n"))[1:] == ["[0] err", "[1] err"], result.err


@case("a line written in pieces is one line; lines of PEs do not mix")
def pieces():
    script = "for i in $(seq 300); do printf %s aaaa; printf '%s\\n' bbbb; done"
    lines = run("-n", 4, "--tag-output", "sh", "-c", script).expect(0, seconds_max=10).out.split("\n")
    assert len(lines) == 1201 and all(line[3:] == " aaaabbbb" for line in lines[:-1]), set(lines)


@case("a very long line keeps every byte and gets one tag")
def long_line():
    out = run("-n", 1, "--tag-output", "sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x").expect(0).out
    assert out == "[0] " + "x" * 1000000 + "\n", (len(out), out[:20], out[-20:])


@case("zero bytes pass")
def zero_bytes():
    assert run("-n", 1, "--tag-output", "printf", "a\\0b\\n").expect(0).out == "[0] a\0b\n"


@case("a reader who closes ends the job as SIGPIPE would")
def closed_reader():
    pipe = subprocess.Popen(f"{OSHRUN} -n 2 --tag-output yes | head -n 3", shell=True, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    result = Result(pipe)
    assert len(result.out.split("\n")) == 4, result.out
    assert result.seconds < patience(2), result.seconds


@case("a full disk is named, loses no PE and is the status, however much is written")
def full_disk():
    said = "oshrun: cannot write to standard output: No space left on device"
    with open("/dev/full", "w") as full:
        for lines in (1, 100000):
            script = f"yes 2>&1 | head -n {lines}; echo over >&2"
            result = Result(start("-n", 2, "--tag-output", "sh", "-c", script, stdout=full))
            assert result.status == 74 and result.err.count("oshrun:") == 1, (lines, result.status, result.err)
            assert said in result.err and "[0] over\n" in result.err and "[1] over\n" in result.err, result.err
        result = Result(start("-n", 1, "--tag-output", "sh", "-c", "echo out; exit 5", stdout=full))
        assert result.status == 5 and said in result.err, (result.status, result.err)
        for option in ("--help", "--version"):
            result = Result(start(option, stdout=full))
            assert result.status == 74 and said in result.err, (option, result.status, result.err)
        result = Result(start("-n", 2, "--tag-output", "sh", "-c", "echo out; echo err >&2", stderr=full))
        assert result.status == 74 and sorted(result.out.split("\n"))[1:] == ["[0] out", "[1] out"], result.out


@case("a reader who does not read delays no death notice")
def stopped_reader():
    process = start("-n", 2, "--tag-output", "sh", "-c", f"if [ $WEFT_PE = 0 ]; then yes; else sleep 0.3; exec {PE} join _exit:3; fi")
    time.sleep(1.0)
    names = [name for _, name, _ in leftovers()]
    assert "yes" not in names, names
    Result(process).expect(3, "PE 1")


@case("with a background process that keeps the pipe open, oshrun still ends")
def kept_pipe():
    process = start("-n", 1, "--tag-output", "sh", "-c", "sleep 5 & echo done")
    line = process.stdout.readline()
    process.wait(patience(2))
    assert line == "[0] done\n" and process.returncode == 0, line


main()
