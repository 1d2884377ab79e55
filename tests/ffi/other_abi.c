/* A library of another release: it answers the question for its version, and has none of the functions of this one. */
#include <stdint.h>

#ifndef VERSION
#define VERSION 2
#endif

uint32_t nrllm_abi_version(void) {
    return VERSION;
}
