/* Function of a joint controller: motor positions, Jacobian and torques of the ankle. Calls it for all states, and counts instructions. */
#include <math.h>
#include <stdio.h>

#include "humanoid_leg.h"
#include "states.h" /* from Python: foot, last, effort, and motor positions */

#define SYSTICK_CONTROL (*(volatile unsigned*)0xE000E010)
#define SYSTICK_RELOAD (*(volatile unsigned*)0xE000E014)
#define SYSTICK_VALUE (*(volatile unsigned*)0xE000E018)
#define INSTRUCTIONS_PER_TICK 40 /* qemu's clock has 25 MHz, an instruction takes 1 ns (-icount shift=0) */
#define TIMES 50

int main(void) {
  float q[humanoid_leg_nq], J[4], tau[2], residual[1], off = 0.0f, open = 0.0f;
  int status = 0;
  SYSTICK_RELOAD = 0xFFFFFF, SYSTICK_VALUE = 0, SYSTICK_CONTROL = 5;
  const unsigned start = SYSTICK_VALUE;
  for (int k = 0; k < STATES * TIMES; ++k)
    status |= humanoid_leg_ankle(foot[k % STATES], last[k % STATES], effort[k % STATES], q, J, tau, residual);
  const unsigned ticks = (start - SYSTICK_VALUE) & 0xFFFFFF;
  for (int k = 0; k < STATES; ++k) {
    status |= humanoid_leg_ankle(foot[k], last[k], effort[k], q, J, tau, residual);
    off = fmaxf(off, fabsf(q[humanoid_leg_q_left_motor] - motor[k][0]));
    off = fmaxf(off, fabsf(q[humanoid_leg_q_right_motor] - motor[k][1]));
    open = fmaxf(open, residual[0]);
  }
  printf("%u instructions a call, status %d, motors within %.1e rad of Python's, at most %.1e open\n",
         ticks * INSTRUCTIONS_PER_TICK / (STATES * TIMES), status, (double)off, (double)open);
  return 0;
}
