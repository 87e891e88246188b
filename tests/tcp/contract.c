/* SPDX-License-Identifier: BSD-3-Clause */
/* Description: the engine over TCP keeps the contract of engines. PEs: 1 */
#include "engine_contract.h"
#include "tcp/engine.h"

int main(void) {
    tap_start(0);
    contract_check(&weft_tcp_engine);
    return tap_finish();
}
