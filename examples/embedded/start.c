/* Reset and the vector table of a Cortex-M4F; newlib's _start does the rest. */
void _start(void);

void reset(void) {
  *(volatile unsigned*)0xE000ED88 |= 0xFu << 20; /* CPACR: enables the floating-point unit */
  __asm volatile("dsb\n isb");
  _start();
}

static void trap(void) {
  for (;;) {
  }
}

__attribute__((section(".vectors"), used)) void* const vectors[16] = {(void*)0x20200000, (void*)reset, (void*)trap, (void*)trap,
                                                                      (void*)trap,       (void*)trap,  (void*)trap};
