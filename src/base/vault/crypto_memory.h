/* crypto_memory.h - lets allocations of OpenSSL end the program instead of failing.
 *
 * Many functions of OpenSSL return an error if an allocation fails, and some crash. With
 * this, the program ends there like one whose own allocation fails (mem.h). */
#pragma once

/* Call it once, before any other function of OpenSSL. */
void crypto_memory_init(void);
