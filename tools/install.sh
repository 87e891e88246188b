#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause Installs the results of make, and removes them again. make
# sets the folders.
#
#   tools/install.sh install|uninstall    with DESTDIR BINDIR LIBDIR INCLUDEDIR MANDIR DOCDIR BUILD,
#                                         STRIP, and the variables of tools/fill.sh
#
# STRIP is the command that removes the symbols of a debugger; with an empty STRIP they are kept.
#
# DOCDIR/installed lists every installed file, and every folder (with a final slash) that was
# created. If another version is installed over an existing one, the list contains both, so that
# uninstall removes both and nothing else.
set -eu
export LC_ALL=C
absolute() { realpath -ms "$1"; }
bin=$(absolute "$BINDIR") lib=$(absolute "$LIBDIR") include=$(absolute "$INCLUDEDIR")
man=$(absolute "$MANDIR") doc=$(absolute "$DOCDIR")
list=$DESTDIR$doc/installed

note() { echo "$1" >&3; }

make_folder() {
    [ ! -d "$DESTDIR$1" ] || return 0
    make_folder "$(dirname "$1")"
    mkdir "$DESTDIR$1"
    note "$1/"
}

# put MODE FOLDER FILE...
put() {
    mode=$1 folder=$2
    shift 2
    make_folder "$folder"
    install -m "$mode" "$@" "$DESTDIR$folder"
    for file; do note "$folder/${file##*/}"; done
}

# put_binary MODE FOLDER FILE...: strips the file, but keeps the symbols that the linker needs, also
# in an archive.
put_binary() {
    put "$@"
    [ -n "$STRIP" ] || return 0
    folder=$2
    shift 2
    for file; do
        case $file in
        *.a) $STRIP --strip-debug "$DESTDIR$folder/${file##*/}" ;;
        *) $STRIP --strip-unneeded "$DESTDIR$folder/${file##*/}" ;;
        esac
    done
}

# put_filled MODE FOLDER NAME TEMPLATE [c++]
put_filled() {
    make_folder "$2"
    rm -f "$DESTDIR$2/$3"
    tools/fill.sh "$4" "$2" "${5:-}" >"$DESTDIR$2/$3"
    chmod "$1" "$DESTDIR$2/$3"
    note "$2/$3"
}

# put_link TARGET LINK
put_link() {
    ln -sfn "$1" "$DESTDIR$2"
    note "$2"
}

# put_tree FOLDER NAME...: files and folders of the tree, with their folders.
put_tree() {
    to=$1
    shift
    find "$@" -type f ! -name '*.pyc' | sed 's|^\./||' | sort | while read -r file; do
        mode=644 folder=
        [ ! -x "$file" ] || mode=755
        case $file in */*) folder=/${file%/*} ;; esac
        put "$mode" "$to$folder" "$file"
    done
}

# make has created about two thousand links; one command copies them all.
put_manual() {
    for section in "$BUILD"/man/man?; do
        make_folder "$man/${section##*/}"
        cp -dT --preserve=mode --remove-destination -r "$section" "$DESTDIR$man/${section##*/}"
        (cd "$section" && find . ! -type d | sed "s|^\.|$man/${section##*/}|") >&3
    done
}

put_all() {
    put_binary 755 "$bin" "$BUILD/bin/oshrun" "$BUILD/install/weft"
    put_filled 755 "$bin" oshcc tools/oshcc.in
    put_filled 755 "$bin" oshc++ tools/oshcc.in c++
    put_binary 755 "$lib" "$BUILD/lib/libweft.so.$VERSION"
    put_link "libweft.so.$VERSION" "$lib/libweft.so.${VERSION%%.*}"
    put_link "libweft.so.${VERSION%%.*}" "$lib/libweft.so"
    for file in "$BUILD"/lib/libweft_cuda.so "$BUILD"/lib/libweft_ucx.so; do
        [ ! -e "$file" ] || put_binary 755 "$lib" "$file"
    done
    for file in "$BUILD"/lib/libweft_*_sm*; do
        [ ! -e "$file" ] || put 644 "$lib" "$file"
    done
    put_binary 644 "$lib" "$BUILD/lib/libweft.a"
    put_filled 644 "$lib/pkgconfig" weft.pc tools/weft.pc.in
    for file in WeftConfig.cmake WeftConfigVersion.cmake; do
        put_filled 644 "$lib/cmake/Weft" "$file" "tools/$file.in"
    done
    (cd include && put_tree "$include" .)
    put_manual
    put_tree "$doc" README.md CHANGELOG.md LICENSE docs/*.md docs/adr docs/plots examples
}

# In folders that the loader searches, ldconfig registers the library. Otherwise programs must name
# the folder, as those of oshcc and CMake do.
tell_loader() {
    [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null || return 0
    ! ldconfig -vNX 2>/dev/null | grep -q "^$lib:" || ldconfig
}

# Lines of an existing list are kept as long as their files exist.
keep_old() {
    [ ! -e "$list" ] || while read -r path; do
        [ ! -e "$DESTDIR$path" ] && [ ! -L "$DESTDIR$path" ] || echo "$path"
    done <"$list"
}

# The list is always written, even after an error, for the files that exist.
write_list() {
    [ ! -d "$DESTDIR$doc" ] || sort -u "$fresh" >"$list"
    rm -f "$fresh"
}

install_all() {
    mkdir -p "$DESTDIR/"
    fresh=$(mktemp)
    keep_old >"$fresh"
    exec 3>>"$fresh"
    trap write_list EXIT
    make_folder "$doc"
    note "$doc/installed"
    put_all
    tell_loader
    trap - EXIT
    write_list
    echo "installed below $DESTDIR$(dirname "$bin"): $(grep -vc '/$' "$list") files, listed in $list"
}

uninstall_all() {
    [ -e "$list" ] || {
        echo "uninstall: there is no $list, so that nothing is known to be installed there;" \
            "name PREFIX, LIBDIR, ... as for make install" >&2
        exit 1
    }
    folders=$(grep '/$' "$list" | sort -r)
    count=$(grep -vc '/$' "$list")
    grep -v '/$' "$list" | sed "s|^|$DESTDIR|" | xargs -d '\n' rm -f
    echo "$folders" | while read -r folder; do
        [ -z "$folder" ] || rmdir "$DESTDIR$folder" 2>/dev/null || true
    done
    tell_loader
    echo "removed $count files that make install had put below $DESTDIR$(dirname "$bin")"
}

case ${1:-} in
install) install_all ;;
uninstall) uninstall_all ;;
*) echo "install.sh: say install or uninstall" >&2 && exit 2 ;;
esac
