/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps the module's file and reads its section headers. A file that was replaced after it was
 * loaded has other program headers; it is treated as having no symbols. */
#include "base/symbol.h"
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_FILE "/proc/self/exe"

struct module {
    uintptr_t at; /* the address to find */
    const ElfW(Phdr) * headers;
    size_t nheaders;
    uintptr_t base;
    char path[PATH_MAX];
};

struct file {
    const char *bytes;
    size_t size;
    const ElfW(Shdr) * sections;
    size_t nsections;
};

/* --- The module ------------------------------------------------------------------------------ */

/* dl_iterate_phdr reports the program first, without a name. */
static int module_match(struct dl_phdr_info *info, size_t size, void *out) {
    struct module *module = out;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD ||
            module->at - (info->dlpi_addr + header->p_vaddr) >= header->p_memsz)
            continue;
        module->headers = info->dlpi_phdr;
        module->nheaders = info->dlpi_phnum;
        module->base = info->dlpi_addr;
        snprintf(module->path, sizeof module->path, "%s",
                 info->dlpi_name && *info->dlpi_name ? info->dlpi_name : OWN_FILE);
        return 1;
    }
    return 0;
}

static void name_module(const struct module *module, struct weft_symbol *found) {
    char target[PATH_MAX];
    const char *path = module->path;
    ssize_t length = -1;
    if (strcmp(path, OWN_FILE) == 0 && (length = readlink(path, target, sizeof target - 1)) > 0) {
        target[length] = '\0';
        path = target;
    }
    const char *slash = strrchr(path, '/');
    snprintf(found->module, sizeof found->module, "%.63s", slash ? slash + 1 : path);
}

/* --- The file -------------------------------------------------------------------------------- */

static bool has_range(const struct file *file, size_t offset, size_t bytes) {
    return offset <= file->size && bytes <= file->size - offset;
}

/* Returns whether the mapped file is the module's and has section headers. */
static bool check_file(struct file *file, const struct module *module) {
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file->bytes;
    size_t header_bytes = module->nheaders * sizeof *module->headers;
    if (!has_range(file, 0, sizeof *head) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_phnum != module->nheaders || head->e_shentsize != sizeof *file->sections ||
        !has_range(file, head->e_phoff, header_bytes) ||
        !has_range(file, head->e_shoff, head->e_shnum * sizeof *file->sections) ||
        memcmp(file->bytes + head->e_phoff, module->headers, header_bytes) != 0)
        return false;
    file->sections = (const ElfW(Shdr) *)(file->bytes + head->e_shoff);
    file->nsections = head->e_shnum;
    return true;
}

static bool open_file(struct file *file, const struct module *module) {
    struct stat status;
    int fd = open(module->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct file){.bytes = bytes, .size = (size_t)status.st_size};
    if (check_file(file, module))
        return true;
    munmap(bytes, file->size);
    return false;
}

/* --- Its symbols ----------------------------------------------------------------------------- */

static bool covers(const ElfW(Sym) * symbol, int type, uintptr_t offset) {
    return ELF64_ST_TYPE(symbol->st_info) == type && symbol->st_shndx != SHN_UNDEF &&
           offset - symbol->st_value < symbol->st_size;
}

struct table {
    const ElfW(Sym) * symbols;
    size_t count;
    const char *names;
    size_t names_bytes;
};

static bool find_table(const struct file *file, uint32_t type, struct table *table) {
    const ElfW(Shdr) *section = file->sections, *end = section + file->nsections;
    while (section < end && section->sh_type != type)
        section++;
    if (section == end || section->sh_link >= file->nsections ||
        !has_range(file, section->sh_offset, section->sh_size))
        return false;
    const ElfW(Shdr) *names = &file->sections[section->sh_link];
    if (!has_range(file, names->sh_offset, names->sh_size))
        return false;
    *table = (struct table){(const ElfW(Sym) *)(file->bytes + section->sh_offset),
                            section->sh_size / sizeof(ElfW(Sym)), file->bytes + names->sh_offset,
                            names->sh_size};
    return true;
}

static bool search_table(const struct file *file, uint32_t which, uintptr_t offset, int type,
                         struct weft_symbol *found) {
    struct table table;
    const ElfW(Sym) *best = NULL;
    if (!find_table(file, which, &table))
        return false;
    for (size_t i = 0; i < table.count; i++)
        if (covers(&table.symbols[i], type, offset) &&
            (!best || ELF64_ST_BIND(table.symbols[i].st_info) == STB_GLOBAL))
            best = &table.symbols[i];
    if (!best || best->st_name >= table.names_bytes)
        return false;
    size_t room = table.names_bytes - best->st_name;
    snprintf(found->name, sizeof found->name, "%.*s", (int)(room < INT_MAX ? room : INT_MAX),
             table.names + best->st_name);
    found->begin = found->base + best->st_value;
    found->bytes = best->st_size;
    return true;
}

bool weft_symbol_in_program(const void *at) {
    struct module module = {.at = (uintptr_t)at};
    return dl_iterate_phdr(module_match, &module) && strcmp(module.path, OWN_FILE) == 0;
}

bool weft_symbol_find(const void *at, enum weft_symbol_kind kind, struct weft_symbol *found) {
    struct module module = {.at = (uintptr_t)at};
    struct file file;
    *found = (struct weft_symbol){.base = 0};
    if (!dl_iterate_phdr(module_match, &module))
        return false;
    found->base = module.base;
    name_module(&module, found);
    if (!open_file(&file, &module))
        return true;
    int type = kind == WEFT_SYMBOL_FUNCTION ? STT_FUNC : STT_OBJECT;
    uintptr_t offset = module.at - module.base;
    if (!search_table(&file, SHT_SYMTAB, offset, type, found))
        search_table(&file, SHT_DYNSYM, offset, type, found);
    munmap((void *)file.bytes, file.size);
    return true;
}

void weft_symbol_each_variable(void (*take)(uintptr_t begin, size_t bytes)) {
    struct module module = {.at = getauxval(AT_PHDR)};
    struct file file;
    struct table table;
    if (!dl_iterate_phdr(module_match, &module) || !open_file(&file, &module))
        return;
    if (find_table(&file, SHT_SYMTAB, &table) || find_table(&file, SHT_DYNSYM, &table))
        for (size_t i = 0; i < table.count; i++) {
            const ElfW(Sym) *symbol = &table.symbols[i];
            if (covers(symbol, STT_OBJECT, symbol->st_value))
                take(module.base + symbol->st_value, symbol->st_size);
        }
    munmap((void *)file.bytes, file.size);
}
