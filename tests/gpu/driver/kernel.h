/* SPDX-License-Identifier: BSD-3-Clause */
/* KERNEL(name), after a kernel's definition, registers it with the driver: its type tells how to
 * take its arguments from the array of pointers that a launch gives. */
#ifndef TESTS_GPU_DRIVER_KERNEL_H
#define TESTS_GPU_DRIVER_KERNEL_H

#include "module.h"
#include <tuple>
#include <utility>

template <class T> static bool argument_reaches(const T &, int) {
    return true;
}
template <class T> static bool argument_reaches(T *const &argument, int gpu) {
    return kernel_reaches((const void *)argument, gpu);
}

template <auto function> struct trampoline;
template <class... A, void (*function)(A...)> struct trampoline<function> {
    using arguments = std::tuple<A...>;

    template <size_t... I> static void *pack(void **from, std::index_sequence<I...>) {
        return new arguments(*static_cast<A *>(from[I])...);
    }
    static void *pack(void **from) { return pack(from, std::index_sequence_for<A...>{}); }
    static bool reaches(const void *packed, int gpu) {
        return std::apply([&](const A &...each) { return (argument_reaches(each, gpu) && ...); },
                          *static_cast<const arguments *>(packed));
    }
    static void run(const void *packed) {
        std::apply(function, *static_cast<const arguments *>(packed));
    }
    static void drop(void *packed) { delete static_cast<arguments *>(packed); }
};

#ifdef WEFT_KERNEL_THREADS
enum { KERNEL_THREADS = true };
#else
enum { KERNEL_THREADS = false };
#endif

#define KERNEL(name)                                                 \
    static struct kernel name##_kernel = {#name,                     \
                                          trampoline<name>::pack,    \
                                          trampoline<name>::reaches, \
                                          trampoline<name>::run,     \
                                          trampoline<name>::drop,    \
                                          KERNEL_THREADS,            \
                                          nullptr};                  \
    __attribute__((constructor)) static void name##_registers() {    \
        kernel_register(&name##_kernel);                             \
    }

#endif
