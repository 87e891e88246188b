/* SPDX-License-Identifier: BSD-3-Clause */
/* Releases Python's GIL while this thread waits for other processes or for the GPU. PyTorch calls
 * the backend with and without the GIL. Three of Python's functions are enough, so no Python header
 * is needed, and one shim serves all versions. */
#pragma once

#include <unistd.h>

extern "C" {
__attribute__((weak)) int Py_IsInitialized(void);
__attribute__((weak)) int PyGILState_Check(void);
__attribute__((weak)) void *PyEval_SaveThread(void);
__attribute__((weak)) void PyEval_RestoreThread(void *);
}

namespace weft {

class WithoutGil {
  public:
    WithoutGil() {
        if (PyEval_SaveThread && Py_IsInitialized() && PyGILState_Check())
            thread_ = PyEval_SaveThread();
    }
    ~WithoutGil() {
        if (thread_)
            take_back();
    }
    WithoutGil(const WithoutGil &) = delete;
    WithoutGil &operator=(const WithoutGil &) = delete;

  private:
    /* At process exit Python ends a thread that takes the GIL by unwinding it, and C++ would
     * terminate the process. The thread blocks here instead, as Python itself does since 3.14. */
    void take_back() {
        struct Stay {
            bool goes_on = false;
            ~Stay() {
                while (!goes_on)
                    pause();
            }
        } stay;
        PyEval_RestoreThread(thread_);
        stay.goes_on = true;
    }

    void *thread_ = nullptr;
};

} // namespace weft
