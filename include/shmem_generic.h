/* SPDX-License-Identifier: BSD-3-Clause */
/* The type-generic names of C11, with and without a leading context. Part of shmem.h.
 *
 * The number of arguments shows whether there is a context, and the first pointer argument selects
 * the type. Put an argument with commas outside parentheses, such as a compound literal, in
 * parentheses. A type that the specification does not list has no association, which is a compile
 * error. */
#ifndef SHMEM_H
#error "include shmem.h instead"
#endif
#ifndef SHMEM_GENERIC_H
#define SHMEM_GENERIC_H

#include "shmem_types.h"

/* clang-format off */
#define SHMEM_ARM(N, T, OP)           , T *: shmem_##N##OP
#define SHMEM_ARM_CONST(N, T, OP)     , const T *: shmem_##N##OP
#define SHMEM_ARM_CTX(N, T, OP)       , T *: shmem_ctx_##N##OP
#define SHMEM_ARM_CTX_CONST(N, T, OP) , const T *: shmem_ctx_##N##OP

/* Programs for OpenSHMEM 1.3 have volatile flags, so 1.3's atomics and waits accept them. */
#define SHMEM_ARM_VOLATILE(N, T, OP)     , volatile T *: shmem_##N##OP
#define SHMEM_ARM_CTX_VOLATILE(N, T, OP) , volatile T *: shmem_ctx_##N##OP

#define SHMEM_A_CTX(ctx) _Generic((ctx), shmem_ctx_t: (ctx))
#define SHMEM_CALL(TYPES, OP, p, ...) _Generic((p) TYPES(SHMEM_ARM, OP))(p, __VA_ARGS__)
#define SHMEM_CALL_CTX(TYPES, OP, ctx, p, ...)                                                     \
    _Generic((p) TYPES(SHMEM_ARM_CTX, OP))(SHMEM_A_CTX(ctx), p, __VA_ARGS__)
/* A pointer that is only read may be T * or const T *. */
#define SHMEM_READ(TYPES, OP, p, pe)                                                               \
    _Generic((p) TYPES(SHMEM_ARM, OP) TYPES(SHMEM_ARM_CONST, OP))(p, pe)
#define SHMEM_READ_CTX(TYPES, OP, ctx, p, pe)                                                      \
    _Generic((p) TYPES(SHMEM_ARM_CTX, OP) TYPES(SHMEM_ARM_CTX_CONST, OP))(SHMEM_A_CTX(ctx), p, pe)

/* The association has checked the type, so the cast only removes the qualifier. */
#define SHMEM_ATOMIC(TYPES, OP, p, ...)                                                            \
    _Generic((p) TYPES(SHMEM_ARM, OP) TYPES(SHMEM_ARM_VOLATILE, OP))((void *)(p), __VA_ARGS__)
#define SHMEM_ATOMIC_CTX(TYPES, OP, ctx, p, ...)                                                   \
    _Generic((p) TYPES(SHMEM_ARM_CTX, OP) TYPES(SHMEM_ARM_CTX_VOLATILE, OP))                       \
        (SHMEM_A_CTX(ctx), (void *)(p), __VA_ARGS__)
#define SHMEM_FETCH(TYPES, OP, p, pe)                                                              \
    _Generic((p) TYPES(SHMEM_ARM, OP) TYPES(SHMEM_ARM_CONST, OP) TYPES(SHMEM_ARM_VOLATILE, OP))    \
        ((const void *)(p), pe)
#define SHMEM_FETCH_CTX(TYPES, OP, ctx, p, pe)                                                     \
    _Generic((p) TYPES(SHMEM_ARM_CTX, OP) TYPES(SHMEM_ARM_CTX_CONST, OP)                           \
             TYPES(SHMEM_ARM_CTX_VOLATILE, OP))(SHMEM_A_CTX(ctx), (const void *)(p), pe)

/* SHMEM_CALLn(TYPES, OP, arguments): a routine of n arguments, n + 1 with a context. The forms
 * follow the arguments, so the number of arguments decides which form becomes `form`. OP starts
 * with an underscore, because a program may have a macro named p, g or put. */
#define SHMEM_FORM2(t, o, a, b, c, form, ...)                form
#define SHMEM_FORM3(t, o, a, b, c, d, form, ...)             form
#define SHMEM_FORM4(t, o, a, b, c, d, e, form, ...)          form
#define SHMEM_FORM5(t, o, a, b, c, d, e, f, form, ...)       form
#define SHMEM_FORM6(t, o, a, b, c, d, e, f, g, form, ...)    form
#define SHMEM_FORM7(t, o, a, b, c, d, e, f, g, h, form, ...) form
#define SHMEM_CALLS SHMEM_CALL_CTX, SHMEM_CALL, SHMEM_TOO_FEW, _
#define SHMEM_READS SHMEM_READ_CTX, SHMEM_READ, SHMEM_TOO_FEW, _
#define SHMEM_ATOMICS SHMEM_ATOMIC_CTX, SHMEM_ATOMIC, SHMEM_TOO_FEW, _
#define SHMEM_FETCHES SHMEM_FETCH_CTX, SHMEM_FETCH, SHMEM_TOO_FEW, _
#define SHMEM_PICK(FORM, ...) FORM(__VA_ARGS__)
#define SHMEM_FETCH2(...) SHMEM_PICK(SHMEM_FORM2, __VA_ARGS__, SHMEM_FETCHES)(__VA_ARGS__)
#define SHMEM_ATOMIC2(...) SHMEM_PICK(SHMEM_FORM2, __VA_ARGS__, SHMEM_ATOMICS)(__VA_ARGS__)
#define SHMEM_ATOMIC3(...) SHMEM_PICK(SHMEM_FORM3, __VA_ARGS__, SHMEM_ATOMICS)(__VA_ARGS__)
#define SHMEM_ATOMIC4(...) SHMEM_PICK(SHMEM_FORM4, __VA_ARGS__, SHMEM_ATOMICS)(__VA_ARGS__)
#define SHMEM_READ2(...) SHMEM_PICK(SHMEM_FORM2, __VA_ARGS__, SHMEM_READS)(__VA_ARGS__)
#define SHMEM_CALL2(...) SHMEM_PICK(SHMEM_FORM2, __VA_ARGS__, SHMEM_CALLS)(__VA_ARGS__)
#define SHMEM_CALL3(...) SHMEM_PICK(SHMEM_FORM3, __VA_ARGS__, SHMEM_CALLS)(__VA_ARGS__)
#define SHMEM_CALL4(...) SHMEM_PICK(SHMEM_FORM4, __VA_ARGS__, SHMEM_CALLS)(__VA_ARGS__)
#define SHMEM_CALL5(...) SHMEM_PICK(SHMEM_FORM5, __VA_ARGS__, SHMEM_CALLS)(__VA_ARGS__)
#define SHMEM_CALL6(...) SHMEM_PICK(SHMEM_FORM6, __VA_ARGS__, SHMEM_CALLS)(__VA_ARGS__)
#define SHMEM_CALL7(...) SHMEM_PICK(SHMEM_FORM7, __VA_ARGS__, SHMEM_CALLS)(__VA_ARGS__)

#define shmem_put(...)            SHMEM_CALL4(SHMEM_C_RMA, _put, __VA_ARGS__)
#define shmem_get(...)            SHMEM_CALL4(SHMEM_C_RMA, _get, __VA_ARGS__)
#define shmem_put_nbi(...)        SHMEM_CALL4(SHMEM_C_RMA, _put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...)        SHMEM_CALL4(SHMEM_C_RMA, _get_nbi, __VA_ARGS__)
#define shmem_p(...)              SHMEM_CALL3(SHMEM_C_RMA, _p, __VA_ARGS__)
#define shmem_g(...)              SHMEM_READ2(SHMEM_C_RMA, _g, __VA_ARGS__)
#define shmem_iput(...)           SHMEM_CALL6(SHMEM_C_RMA, _iput, __VA_ARGS__)
#define shmem_iget(...)           SHMEM_CALL6(SHMEM_C_RMA, _iget, __VA_ARGS__)
#define shmem_ibput(...)          SHMEM_CALL7(SHMEM_C_RMA, _ibput, __VA_ARGS__)
#define shmem_ibget(...)          SHMEM_CALL7(SHMEM_C_RMA, _ibget, __VA_ARGS__)
#define shmem_put_signal(...)     SHMEM_CALL7(SHMEM_C_RMA, _put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_CALL7(SHMEM_C_RMA, _put_signal_nbi, __VA_ARGS__)

#define shmem_atomic_fetch(...)     SHMEM_FETCH2(SHMEM_C_AMO_EXTENDED, _atomic_fetch, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) SHMEM_CALL3(SHMEM_C_AMO_EXTENDED, _atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_set(...)       SHMEM_ATOMIC3(SHMEM_C_AMO_EXTENDED, _atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...)      SHMEM_ATOMIC3(SHMEM_C_AMO_EXTENDED, _atomic_swap, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...)  SHMEM_CALL4(SHMEM_C_AMO_EXTENDED, _atomic_swap_nbi, __VA_ARGS__)

#define shmem_atomic_compare_swap(...)     SHMEM_ATOMIC4(SHMEM_C_AMO, _atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) SHMEM_CALL5(SHMEM_C_AMO, _atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_inc(...)              SHMEM_ATOMIC2(SHMEM_C_AMO, _atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...)        SHMEM_ATOMIC2(SHMEM_C_AMO, _atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...)    SHMEM_CALL3(SHMEM_C_AMO, _atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_add(...)              SHMEM_ATOMIC3(SHMEM_C_AMO, _atomic_add, __VA_ARGS__)
#define shmem_atomic_fetch_add(...)        SHMEM_ATOMIC3(SHMEM_C_AMO, _atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...)    SHMEM_CALL4(SHMEM_C_AMO, _atomic_fetch_add_nbi, __VA_ARGS__)

#define shmem_atomic_and(...)           SHMEM_CALL3(SHMEM_C_AMO_BITWISE, _atomic_and, __VA_ARGS__)
#define shmem_atomic_or(...)            SHMEM_CALL3(SHMEM_C_AMO_BITWISE, _atomic_or, __VA_ARGS__)
#define shmem_atomic_xor(...)           SHMEM_CALL3(SHMEM_C_AMO_BITWISE, _atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and(...)     SHMEM_CALL3(SHMEM_C_AMO_BITWISE, _atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...)      SHMEM_CALL3(SHMEM_C_AMO_BITWISE, _atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...)     SHMEM_CALL3(SHMEM_C_AMO_BITWISE, _atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) SHMEM_CALL4(SHMEM_C_AMO_BITWISE, _atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...)  SHMEM_CALL4(SHMEM_C_AMO_BITWISE, _atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) SHMEM_CALL4(SHMEM_C_AMO_BITWISE, _atomic_fetch_xor_nbi, __VA_ARGS__)

/* Includes short integers, which are deprecated. */
#define SHMEM_C_AWAITED(X, A) SHMEM_C_WAIT(X, A) SHMEM_SHORTS(X, A)
#define shmem_wait_until(...)             SHMEM_ATOMIC(SHMEM_C_AWAITED, _wait_until, __VA_ARGS__)
#define shmem_test(...)                   SHMEM_ATOMIC(SHMEM_C_AWAITED, _test, __VA_ARGS__)
#define shmem_wait_until_all(...)         SHMEM_CALL(SHMEM_C_AWAITED, _wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...)         SHMEM_CALL(SHMEM_C_AWAITED, _wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...)        SHMEM_CALL(SHMEM_C_AWAITED, _wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...)  SHMEM_CALL(SHMEM_C_AWAITED, _wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...)  SHMEM_CALL(SHMEM_C_AWAITED, _wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) SHMEM_CALL(SHMEM_C_AWAITED, _wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all(...)               SHMEM_CALL(SHMEM_C_AWAITED, _test_all, __VA_ARGS__)
#define shmem_test_any(...)               SHMEM_CALL(SHMEM_C_AWAITED, _test_any, __VA_ARGS__)
#define shmem_test_some(...)              SHMEM_CALL(SHMEM_C_AWAITED, _test_some, __VA_ARGS__)
#define shmem_test_all_vector(...)        SHMEM_CALL(SHMEM_C_AWAITED, _test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...)        SHMEM_CALL(SHMEM_C_AWAITED, _test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...)       SHMEM_CALL(SHMEM_C_AWAITED, _test_some_vector, __VA_ARGS__)

/* These names are functions, too: three arguments call the function, four have a context. */
#define SHMEM_SIGNAL_FORM(a, b, c, d, form, ...) form
#define shmem_signal_add(...)                                                                      \
    SHMEM_SIGNAL_FORM(__VA_ARGS__, shmem_ctx_signal_add, shmem_signal_add, 0, 0)(__VA_ARGS__)
#define shmem_signal_set(...)                                                                      \
    SHMEM_SIGNAL_FORM(__VA_ARGS__, shmem_ctx_signal_set, shmem_signal_set, 0, 0)(__VA_ARGS__)

/* One argument is a team; four arguments are an active set and call the deprecated function. */
#define SHMEM_SYNC_FORM(a, b, c, d, form, ...) form
#define SHMEM_A_TEAM(team) _Generic((team), shmem_team_t: (team))
#define SHMEM_SYNC_TEAM(team) shmem_team_sync(SHMEM_A_TEAM(team))
#define shmem_sync(...)                                                                            \
    SHMEM_SYNC_FORM(__VA_ARGS__, shmem_sync, 0, 0, SHMEM_SYNC_TEAM, 0)(__VA_ARGS__)

/* Collectives take a team; `dest` selects the type. */
#define SHMEM_TEAM_CALL(TYPES, OP, team, dest, ...)                                                \
    _Generic((dest) TYPES(SHMEM_ARM, OP))(SHMEM_A_TEAM(team), dest, __VA_ARGS__)
#define shmem_broadcast(...)   SHMEM_TEAM_CALL(SHMEM_C_RMA, _broadcast, __VA_ARGS__)
#define shmem_collect(...)     SHMEM_TEAM_CALL(SHMEM_C_RMA, _collect, __VA_ARGS__)
#define shmem_fcollect(...)    SHMEM_TEAM_CALL(SHMEM_C_RMA, _fcollect, __VA_ARGS__)
#define shmem_alltoall(...)    SHMEM_TEAM_CALL(SHMEM_C_RMA, _alltoall, __VA_ARGS__)
#define shmem_alltoalls(...)   SHMEM_TEAM_CALL(SHMEM_C_RMA, _alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...)  SHMEM_TEAM_CALL(SHMEM_C_BITWISE, _and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...)   SHMEM_TEAM_CALL(SHMEM_C_BITWISE, _or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...)  SHMEM_TEAM_CALL(SHMEM_C_BITWISE, _xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...)  SHMEM_TEAM_CALL(SHMEM_C_RMA, _max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...)  SHMEM_TEAM_CALL(SHMEM_C_RMA, _min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...)  SHMEM_TEAM_CALL(SHMEM_C_ARITHMETIC, _sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEM_TEAM_CALL(SHMEM_C_ARITHMETIC, _prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...)  SHMEM_TEAM_CALL(SHMEM_C_ARITHMETIC, _sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...)  SHMEM_TEAM_CALL(SHMEM_C_ARITHMETIC, _sum_exscan, __VA_ARGS__)
/* clang-format on */

#endif
