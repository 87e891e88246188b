/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways in which a kernel of the scenes waits for the victim. */
#ifndef TESTS_GPU_SCENES_WAITS_H
#define TESTS_GPU_SCENES_WAITS_H

enum scene_wait {
    SCENE_SIGNAL,
    SCENE_SIGNAL_OF_WARP,
    SCENE_SIGNAL_OF_BLOCK,
    SCENE_LONG_LIMIT,
    SCENE_BARRIER,
    SCENE_SYNC,
    SCENE_GRID_BARRIER,
    SCENE_PACKET,
    SCENE_BYTES /* of a bulk copy, which another thread was to begin */
};

#endif
