/* SPDX-License-Identifier: BSD-3-Clause */
/* --output-filename: a folder for each PE, with a file for its stdout and one for its stderr. */
#ifndef WEFT_LAUNCH_FILES_H
#define WEFT_LAUNCH_FILES_H

/* Makes and empties the files of a PE in `folder`, both folders if need be: fds[0] and [1], close
 * on exec. 0 or -errno, said. */
int weft_files_open(const char *folder, int pe, int fds[2]);

/* Points stdout and stderr there, in the child that becomes this PE. */
void weft_files_redirect(const int fds[2]);

/* Closes them in the launcher, once the child has them. */
void weft_files_close(int fds[2]);

#endif
