/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit handlers run in the reverse order of their registration. A library registers handlers during
 * its first products, when it generates kernels: after our handler, so they would run first, while
 * products continue. Therefore the library's import of the registering function is replaced, so
 * that each of its handlers waits for the products first. */
#include "ops/matmul_exit.h"
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/size.h"

static _Atomic int under_way;
static _Atomic bool exiting;
static _Thread_local bool exits; /* this thread is in exit(): its handlers may still multiply */
static _Thread_local int own;    /* 1 within a product: exit() then waits for the other products */

static void await_products(void) {
    exits = true;
    atomic_store(&exiting, true);
    while (atomic_load(&under_way) > own)
        weft_clock_sleep_ms(1);
}

void weft_matmul_begin(void) {
    atomic_fetch_add(&under_way, 1);
    own = 1;
    if (!atomic_load(&exiting) || exits)
        return;
    atomic_fetch_sub(&under_way, 1);
    for (;;)
        pause();
}

void weft_matmul_end(void) {
    own = 0;
    atomic_fetch_sub(&under_way, 1);
}

/* --- The handlers of a library --------------------------------------------------------------- */

/* A function of the C++ ABI, with which compilers register destructors. */
extern int __cxa_atexit(void (*run)(void *), void *argument, void *library);

struct handler {
    void (*run)(void *);
    void *argument;
};

static void run_handler(void *registered) {
    struct handler *handler = registered;
    await_products();
    handler->run(handler->argument);
    free(handler);
}

static int register_handler(void (*run)(void *), void *argument, void *library) {
    struct handler *handler = malloc(sizeof *handler);
    if (!handler)
        return -1;
    *handler = (struct handler){run, argument};
    return __cxa_atexit(run_handler, handler, library);
}

/* The relocations of a library: of functions that are called through stubs, and of other addresses.
 */
struct imports {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * slots[2];
    size_t bytes[2];
};

/* glibc relocates a dynamic section's d_ptr on most targets, but not on all. */
static struct imports find_imports(const struct link_map *map) {
    struct imports found = {0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        uintptr_t at = entry->d_un.d_ptr;
        const void *table = (const void *)(at < map->l_addr ? map->l_addr + at : at);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            found.symbols = table;
            break;
        case DT_STRTAB:
            found.names = table;
            break;
        case DT_JMPREL:
            found.slots[0] = table;
            break;
        case DT_PLTRELSZ:
            found.bytes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            found.slots[1] = table;
            break;
        case DT_RELASZ:
            found.bytes[1] = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return found;
}

/* Returns whether a relocation stores just a symbol's address, as those of calls do. Relocations of
 * other types may store an offset, or change an instruction. */
static bool slot_is_address(uint64_t type) {
#ifdef __aarch64__
    return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
#else
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
#endif
}

/* Makes the page writable, because the loader may have made the table read-only. */
static void replace_import(uintptr_t slot) {
    void *page = (void *)weft_page_down(slot);
    if (mprotect(page, weft_page_bytes(), PROT_READ | PROT_WRITE) == 0)
        atomic_store((_Atomic uintptr_t *)slot, (uintptr_t)register_handler);
}

void weft_matmul_outlast(void *library) {
    struct link_map *map;
    atexit(await_products);
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return;
    struct imports imports = find_imports(map);
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; i < imports.bytes[table] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *slot = &imports.slots[table][i];
            const ElfW(Sym) *symbol = &imports.symbols[ELF64_R_SYM(slot->r_info)];
            if (slot_is_address(ELF64_R_TYPE(slot->r_info)) &&
                strcmp(imports.names + symbol->st_name, "__cxa_atexit") == 0)
                replace_import(map->l_addr + slot->r_offset);
        }
}
