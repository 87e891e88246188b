/* SPDX-License-Identifier: BSD-3-Clause */
/* --tag-output: PEs write into pipes, and each line is printed after a tag with its PE. A thread
 * copies, so that a slow reader delays only the output.
 *
 * --output-filename: each PE has a folder with one file for its stdout and one for its stderr. The
 * launcher opens the files, so that errors are found before a PE runs. */
#ifndef WEFT_LAUNCH_OUTPUT_H
#define WEFT_LAUNCH_OUTPUT_H

struct weft_output;

/* Makes the pipes. The tags contain `host` unless it is NULL. Returns 0, or -errno after logging
 * the reason. */
int weft_output_open(struct weft_output **output, int npes, const char *host);

/* Connects stdout and stderr to the pipes, in the child that becomes this PE. */
void weft_output_redirect(const struct weft_output *output, int pe);

/* Starts the thread that reads the pipes, after all PEs are started. Returns 0, or -errno after
 * logging the reason. */
int weft_output_start(struct weft_output *output);

/* Writes the output that is in the pipes and ends the thread, within patience_ms (-1: no limit).
 * Returns 0, also if the time is over and output is left; or -errno if writing has failed, which
 * has been logged. */
int weft_output_finish(struct weft_output *output, int patience_ms);

/* Opens and truncates the files of a PE in `folder`; creates folders if needed. The descriptors
 * fds[0] and fds[1] are close-on-exec; the caller closes them after the child has duplicated them.
 * Returns 0, or -errno after logging the reason. */
int weft_output_open_files(const char *folder, int pe, int fds[2]);

/* Connects stdout and stderr to these files, in the child that becomes this PE. */
void weft_output_redirect_to(const int fds[2]);

#endif
