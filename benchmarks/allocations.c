/* Counts the calls of malloc, calloc, realloc and aligned allocation in a process that preloads this. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static unsigned long count;

unsigned long allocations(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

static void counted(void) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }

void* malloc(size_t size) { return counted(), __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return counted(), __libc_calloc(n, size); }
void* realloc(void* p, size_t size) { return counted(), __libc_realloc(p, size); }
void* memalign(size_t alignment, size_t size) { return counted(), __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return counted(), __libc_memalign(alignment, size); }
int posix_memalign(void** p, size_t alignment, size_t size) {
  counted();
  *p = __libc_memalign(alignment, size);
  return *p ? 0 : ENOMEM;
}
