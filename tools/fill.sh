#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause Fills in a template (tools/*.in) for its destination folder
# and writes it to standard output. The folders of programs, library and headers are relative to
# that folder, so that all may be moved together.
#
#   tools/fill.sh TEMPLATE FOLDER [c++]
#
# with BINDIR LIBDIR INCLUDEDIR PREFIX VERSION CC CXX SANFLAGS, and LINK if the linker finds the
# library under another name. The wrappers for C and C++ only differ in the names of compilers.
set -eu
[ "${3:-}" != c++ ] || names='s/\(OSH\|WEFT_\)CC/\1CXX/g' CC=$CXX
seen() { realpath -ms --relative-to="$2" "$1"; }
sed -e "s|@BIN@|$(seen "$BINDIR" "$2")|; s|@LIB@|$(seen "$LIBDIR" "$2")|" \
    -e "s|@INCLUDE@|$(seen "$INCLUDEDIR" "$2")|; s|@INCLUDEDIR@|$(realpath -ms "$INCLUDEDIR")|" \
    -e "s|@PREFIX@|$(realpath -ms "$PREFIX")|; s|@LIBDIR@|$(realpath -ms "$LIBDIR")|" \
    -e "s|@VERSION@|$VERSION|g; s|@SONAME@|libweft.so.${VERSION%%.*}|g; s|@LINK@|${LINK:--lweft}|" \
    -e "s|@CC@|$CC|g; s|@SANFLAGS@|$SANFLAGS|g" -e "${names:-}" "$1"
