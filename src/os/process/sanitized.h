/* sanitized.h - true if this program contains AddressSanitizer or ThreadSanitizer.
 *
 * They read information about the program and inspect its threads from another process, so
 * a sandbox must permit that. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PROCESS_IS_SANITIZED = 1 };
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { PROCESS_IS_SANITIZED = 1 };
#else
enum { PROCESS_IS_SANITIZED = 0 };
#endif
#else
enum { PROCESS_IS_SANITIZED = 0 };
#endif
