/* Requests of a program that runs in callgrind: begin to count instructions, and write what has been counted since the last request. */
#include <valgrind/callgrind.h>

void begin(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}
void zero(void) { CALLGRIND_ZERO_STATS; }
void dump(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }
