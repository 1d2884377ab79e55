/* A library of another release: it returns its version, and has none of this one's functions. */
#include <stdint.h>

#ifndef VERSION
#define VERSION 2
#endif

uint32_t nrllm_abi_version(void) {
    return VERSION;
}
