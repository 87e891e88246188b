/* SPDX-License-Identifier: BSD-3-Clause */
/* Python's lock, given up while this thread waits for other processes or for the GPU. PyTorch calls
 * us with it and without it. Three functions of Python's are all that is needed: no header of its,
 * so that one shim serves all versions. */
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
    /* When the process ends, Python ends a thread that wants its lock: by unwinding it, which C++
     * answers with the end of the process. It stays here instead, as it does from Python 3.14 on.
     */
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
