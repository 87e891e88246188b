/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the engine over UCX keeps the contract of engines. PEs: 1 */
#include "engine_contract.h"
#include "ucx/open.h"

int main(void) {
    const struct weft_engine *ucx = engine_open();
    if (!ucx)
        return 0;
    tap_start(0);
    contract_check(ucx);
    return tap_finish();
}
