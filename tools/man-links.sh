#!/bin/sh
# Finds the manual page of each routine: reads names, one in each line, and prints "LINK PAGE" for
# each routine whose page has another name, as in "shmem_int_put.3 shmem_put.3". Fails with the name
# of a routine that is on no page.
#
#   nm -D --defined-only libweft.so | awk '{ print $3 }' | tools/man-links.sh docs/man/*.[1-9]
#
# A page's NAME section lists its routines, most of them without type, size and context. A routine
# is on the page that lists its full name, or otherwise its name without ctx_, TYPENAME_ and bits.
# Names that a page lists are printed, too, because C11 programs call routines by them.
exec awk '
function link(name, page, section) {
    sub(/.*\//, "", page)
    section = page
    sub(/.*\./, ".", section)
    if (name section != page && !linked[name section]++)
        print name section, page
}
FILENAME != "-" {
    if (/^\.SH/) in_name = ($2 == "NAME")
    else if (in_name) {
        in_name = !sub(/ *\\-.*/, "")
        count = split($0, words, /[, ]+/)
        for (i = 1; i <= count; i++)
            if (words[i] != "") {
                page[words[i]] = FILENAME
                link(words[i], FILENAME)
            }
    }
    next
}
{
    name = $1
    if (!(name in page)) sub(/^shmem_ctx_/, "shmem_", name)
    if (!(name in page)) sub("^shmem_(" types ")_", "shmem_", name)
    if (!(name in page)) sub("^shmemx_(" types ")_", "shmemx_", name)
    if (!(name in page)) sub(/128|16|32|64|8/, "", name)
    if (name in page) link($1, page[name])
    else {
        print "man-links: " $1 " is on no page" > "/dev/stderr"
        missing = 1
    }
}
BEGIN {
    types = "float|double|longdouble|char|schar|short|int|long|longlong|uchar|ushort|uint|ulong|" \
        "ulonglong|u?int(8|16|32|64)|size|ptrdiff|complexf|complexd"
}
END { exit missing }
' "$@" -
