/* SPDX-License-Identifier: BSD-3-Clause */
/* --tag-output: what PEs write passes through pipes, and every line gets its PE in front. A thread
 * pumps, so that a reader who does not read delays nothing but the output.
 *
 * --output-filename: a folder for each PE, with a file for its stdout and one for its stderr. The
 * launcher opens the files, so that what is wrong with them is known before a PE runs. */
#ifndef WEFT_LAUNCH_OUTPUT_H
#define WEFT_LAUNCH_OUTPUT_H

struct weft_output;

/* Makes the pipes. `host` stands in the tags; NULL: none does. 0 or -errno, not logged. */
int weft_output_open(struct weft_output **output, int npes, const char *host);

/* Points stdout and stderr to its pipes, in the child that becomes this PE. */
void weft_output_redirect(const struct weft_output *output, int pe);

/* Starts the thread that reads the pipes, after all PEs are started. 0 or -errno. */
int weft_output_start(struct weft_output *output);

/* Writes out what has come by now and ends the thread, which gets patience_ms for it (-1: as long
 * as it takes). 0, or -errno, said: output was lost. */
int weft_output_finish(struct weft_output *output, int patience_ms);

/* Makes and empties the files of a PE in `folder`, both folders if need be: fds[0] and [1], close
 * on exec; the caller closes them once the child has them. 0 or -errno, said. */
int weft_output_open_files(const char *folder, int pe, int fds[2]);

/* Points stdout and stderr there, in the child that becomes this PE. */
void weft_output_redirect_to(const int fds[2]);

#endif
