/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

void *link_add(struct link **list, void *object) {
    struct link *link = object;
    link->next = *list;
    return *list = link;
}

void *link_find(struct link *list, const void *handle) {
    while (list && list != handle)
        list = list->next;
    return list;
}

void link_remove(struct link **list, void *object) {
    while (*list != object)
        list = &(*list)->next;
    *list = (*list)->next;
}
