/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of live objects, one for each kind: a handle that a program passes is searched for before
 * it is used. A listed object begins with its link. */
#ifndef TESTS_GPU_DRIVER_LINK_H
#define TESTS_GPU_DRIVER_LINK_H

struct link {
    struct link *next;
};

/* The object, which is the first of the list now. */
void *link_add(struct link **list, void *object);

/* Returns the object of this handle, or NULL if there is none. */
void *link_find(struct link *list, const void *handle);

/* The object is in the list. */
void link_remove(struct link **list, void *object);

#endif
