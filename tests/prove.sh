#!/bin/sh
# Runs the tests of one or more build folders with prove and prints its summary.
#
#   tests/prove.sh [-g] [-f FILTER] [-p PLACEMENT] BUILD[:PE-COUNTS[:FILTER[:PLACEMENT]]]...
#   tests/prove.sh -1 ROOM/NAME [-n PES] [-p PLACEMENT] BUILD     one test, also of pytest, case by
#                                                                  case (make test)
#
# A C or C++ test is run once per PE count under oshrun; the counts are the line "PEs: ..." of its
# head, or 1 2 3 4. PE-COUNTS (like 2,4) leaves only those of them. FILTER is an extended regular
# expression on room/name. Scripts (tests/*/*.t) run once, for the first build only.
# With a PLACEMENT (each, 2+1, cyclic:2, list:0,0,1,0) tests run far: PEs pretend to be on several hosts
# (WEFT_PRETEND_HOSTS), and an engine carries their letters: WEFT_ENGINE, or that of tests/far, which
# changes their order. A script whose head says "Far: also." runs far, too, each PE on a host of its
# own; one that says "Far: also, where tests are long." does so in its long form. A program with lines
# "Far: PLACEMENT [SETTINGS [VARIABLE=VALUE]]" in its head runs once for each, with these settings of
# the engine and this variable.
# With hosts:2x3 or hosts:2x3:cyclic for PLACEMENT programs run on 2 hosts of the rig (tests/hosts/rig.py), with 3
# PEs on each, by the default engine, with hosts:2x3:ucx by that over UCX, with hosts:2x3:carrier by the first PE of each
# host; also those whose head names four counts and more, up to the last of them.
# A test of GPUs whose line says "also staged" is run once more, on 2 PEs where the two GPUs do not
# reach each other's memory; of the first build also on 3 PEs, and each test of GPUs on 2 PEs with
# delays and late stores.
# With WEFT_TEST_LONG=1 in the environment tests take their long forms: more time, and 5 and 8 PEs
# where the head names none; WEFT_TEST_PART=2/4 runs the second of four parts (tests/parts.py). One more
# test runs at once than there are processors, as many of them wait or sleep, but 4 at most
# (WEFT_TEST_JOBS=1: one behind the other); on real GPUs (-g) only one.
set -eu
if [ -n "${WEFT_TEST_LONG:-}" ]; then
    pes_default='1 2 3 4 5 8' patience=3600
else
    pes_default='1 2 3 4' patience=
fi
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
only=.
real_gpu=
one=
number=
everywhere=
while getopts gf:1:n:p: option; do
    case $option in
        g) real_gpu=1 ;;
        f) only=$OPTARG ;;
        1) one=$OPTARG only="^$OPTARG(\.t)?\$" ;;
        n) number=$OPTARG pes_default=$OPTARG ;;
        p) everywhere=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
fail() {
    echo "prove.sh: $*" >&2
    exit 2
}
# A script that prove runs, once: its name, and its command.
add_command() {
    script=$build/t/$(echo "$1" | tr / -).t
    case " $list " in *" $script "*) return ;; esac
    printf '#!/bin/sh\nexec %s\n' "$2" >"$script"
    chmod +x "$script"
    list="$list $script"
}
# The program on n PEs: what the script's name ends with, words before the command, options of oshrun.
add() {
    add_command "$name-${n}pe$1" "${2:-} timeout $limit $build/bin/oshrun ${3:-} -n $n $build/tests/$name"
}
# The program on hosts of the rig, which WEFT_TEST_HOSTS tells it, as options of oshrun.
add_on_hosts() {
    hosts=${shape%x*} here=${shape#*x}
    where="--hosts $(seq -s, -f "h%g:$here" 0 $((hosts - 1)))"
    way=
    case $placement in
        *:cyclic) where="$where --map-by node" ;;
        *:ucx) way=WEFT_ENGINE=ucx ;;
        *:carrier) way=WEFT_CARRIERS=host ;;
    esac
    driver=$(gpu_words)
    [ -z "$driver" ] || where="$where -x LD_LIBRARY_PATH -x GPU_REQUIRED"
    add "$far" "tests/hosts/rig.py -n $hosts env ${driver#env} $way WEFT_SSH=fakessh WEFT_TEST_HOSTS='$where'" "$where"
}
# What a test of GPUs finds the pretended driver by; nothing for others.
gpu_words() {
    case $name in
        gpu/*) echo "env LD_LIBRARY_PATH=$(realpath "$build")/tests/gpu/driver GPU_REQUIRED=1" ;;
    esac
}
far_words() {
    echo "env WEFT_PRETEND_HOSTS=$1 WEFT_ENGINE=${WEFT_ENGINE:-$(realpath "$engine")} 'FAKE_ENGINE=$2' ${3:-}"
}
# Each line "Far: ..." of a test's head; false: there is none.
add_far_lines() {
    lines=$(sed -n 's| *\*/.*$||; s/^.*Far: *\([^ ]*\) *\([^ ]*\) *\([^ ]*\).*$/\1 \2 \3/p;15q' "$source")
    [ -n "$lines" ] || return 1
    while read -r where settings variable; do
        add "-far-$(echo "$where $settings $variable" | tr -s ':,;=_ ' - | sed 's/-$//')" \
            "$(gpu_words) $(far_words "$where" "$settings" "$variable")"
    done <<EOF
$lines
EOF
}
# The same of a script.
add_script() {
    file=${test#tests/}
    add_command "${file%.t}${1:-}" "${2:-} timeout ${patience:-300} $test"
}
add_scripts() {
    also='Far: also\.'
    [ -z "${WEFT_TEST_LONG:-}" ] || also='Far: also'
    WEFT_BUILD=$build
    export WEFT_BUILD
    for test in tests/*/*.t; do
        echo "${test#tests/}" | grep -E "${filter:-.}" | grep -qE "$only" || continue
        if [ -z "$placement" ]; then
            add_script
        elif [ -n "$shape" ]; then
            continue
        elif [ -n "$one" ] || { [ "$placement" = each ] && sed 15q "$test" | grep -q "$also"; }; then
            add_script "$far" "$(far_words "$placement" "$reordered")"
        fi
    done
}
add_gpu() {
    pretended=$(gpu_words)
    delays="WEFT_FAKE_DELAY_US=200 WEFT_FAKE_WEAK=1 WEFT_FAKE_SEED=$$"
    staged=$(sed -n 's/^.*PEs: .*also staged.*$/yes/p;15q' "$source" | head -n 1)
    if [ -n "$real_gpu" ]; then
        add ''
        [ "$n$staged" != 2yes ] || add -staged "env SHMEMX_PEER_ACCESS=off"
        return
    fi
    add '' "$pretended"
    [ "$n$staged" != 2yes ] || add -staged "$pretended WEFT_FAKE_NO_PEER=0-1 $delays"
    [ $first = 1 ] || return 0
    [ "$n" != 2 ] || add -delays "$pretended $delays"
    [ "$n$staged" != 3yes ] || add -staged "$pretended WEFT_FAKE_NO_PEER=0-1 WEFT_FAKE_GPUS=3 WEFT_FAKE_FENCED_WRITES=1"
    [ "$n" = 1 ] || add_far_lines || true
}

reordered=seed=${WEFT_TEST_SEED:-$$},reorder=16
jobs=${WEFT_TEST_JOBS:-$(($(nproc) + 1))}
[ "$jobs" -le 4 ] || jobs=4
[ -z "$real_gpu" ] || jobs=1
list=
missing=
builds=
first_build=
first=1
for item; do
    build=$(echo "$item" | cut -d: -f1)
    counts=$(echo "$item" | cut -d: -f2 -s | tr , ' ')
    counts=${counts:-$number}
    filter=$(echo "$item" | cut -d: -f3 -s)
    placement=$(echo "$item" | cut -d: -f4- -s)
    placement=${placement:-$everywhere}
    far=${placement:+-far-$(echo "$placement" | tr :, --)}
    shape=
    limit=${patience:-120}
    case $placement in
        hosts:*)
            limit=${patience:-300} # hosts may have to share a processor here
            case $placement in
                *:ucx)
                    [ -e "$build/lib/libweft_ucx.so" ] || {
                        echo "prove.sh: $build has no libweft_ucx.so (libucx-dev): no tests over UCX" >&2
                        continue
                    }
                    ;;
            esac
            far=${far#-far} shape=$(echo "$placement" | cut -d: -f2)
            counts=$((${shape%x*} * ${shape#*x}))
            ;;
    esac
    [ -x "$build/bin/oshrun" ] ||
        fail "$build/bin/oshrun is not there: build first (make all tests python BUILD=$build, or make test T=ROOM/NAME)"
    case " $builds " in *" $build "*) ;; *) rm -rf "$build/t" ;; esac
    builds="$builds $build" first_build=${first_build:-$build}
    mkdir -p "$build/t"
    engine=$build/tests/far/libweft_fake_engine.so
    [ -z "$placement" ] || [ -n "$shape" ] || [ -e "$engine" ] || missing="$missing $engine"
    # Scripts come first, for some of them wait long.
    if [ -z "$real_gpu" ] && [ "$build" = "$first_build" ]; then
        add_scripts
        if [ -z "$shape" ] && [ -n "$one" ] && [ -e "tests/$one.py" ]; then
            add_command "$one" \
                "${placement:+$(far_words "$placement" "$reordered")} tests/python/pes.t ${one#*/} $number"
        fi
    fi
    for source in tests/*/*.c tests/*/*.cc; do
        name=$(echo "$source" | sed 's|^tests/||; s|\.cc*$||')
        echo "$name" | grep -qE "${filter:-.}" && echo "$name" | grep -qE "$only" || continue
        case $name in gpu/*) ;; *) [ -z "$real_gpu" ] || continue ;; esac
        pes=$(sed -n 's/^.*PEs: *\([0-9 ]*\).*$/\1/p;15q' "$source" | head -n 1)
        grep -q 'PEs: none' "$source" && continue
        [ -x "$build/tests/$name" ] || missing="$missing $build/tests/$name"
        pes=$(echo ${pes:-${shape:+$counts}})
        case $pes in # a list such as 1 2 3 4 7 says that any number will do
            *' '*' '*' '*) [ -z "$shape" ] || [ "$counts" -gt "${pes##* }" ] || pes=$counts ;;
        esac
        pes=${pes:-$pes_default}
        for n in $pes; do
            case " ${counts:-$n} " in *" $n "*) ;; *) continue ;; esac
            if [ -n "$shape" ]; then
                add_on_hosts
            elif [ -n "$placement" ]; then
                add "$far" "$(gpu_words) $(far_words "$placement" "$reordered")"
            else
                case $name in gpu/*) add_gpu ;; *) add_far_lines || add '' ;; esac
            fi
        done
    done
    # Of the scripts, these have to do with the machine's GPUs: all of their scenes on n PEs.
    for n in ${real_gpu:+${counts:-$pes_default}}; do
        for name in gpu/check gpu/death gpu/examples; do
            echo "tests/$name.t" | grep -qE "$only" && { [ "$n" != 1 ] || [ $name = gpu/examples ]; } || continue
            add_command "$name-${n}pe" \
                "env WEFT_BUILD=$build GPU_REAL=1 GPU_PES=$n timeout ${patience:-300} tests/$name.t"
        done
    done
    first=0
done
# shellcheck disable=SC2086
if [ -n "$missing" ]; then
    set -- $missing
    fail "$# programs of tests are not built, $1 first: make tests BUILD=$build, or make test T=ROOM/NAME"
fi
if [ -n "${WEFT_TEST_PART:-}" ]; then
    # shellcheck disable=SC2086
    list=$(tests/parts.py "$WEFT_TEST_PART" $list) || exit
fi
[ -n "$list" ] || fail "no test matches '$only'${number:+ on $number PEs}"
# shellcheck disable=SC2086
exec prove ${one:+--verbose} --jobs "$jobs" --timer --exec '' $list
