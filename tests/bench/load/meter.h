/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: wall clock, and processor time of processes and of the machine. */
#ifndef METER_H
#define METER_H

#include <sys/types.h>

/**
 * struct meter - readings of all clocks, in seconds
 * @when: wall clock
 * @cpu: processor time of processes
 * @busy: time in which the processors of the machine were not idle since boot, added up; it
 * includes interrupts, softirqs and kernel threads, which no process is charged for
 */
struct meter {
	double when, cpu, busy;
};

/**
 * meter_now() - read the wall clock
 *
 * Return: seconds.
 */
double meter_now(void);

/**
 * meter_read() - read the clocks of this process and this machine
 *
 * Return: readings.
 */
struct meter meter_read(void);

/**
 * meter_process() - read the user and system time of a running process, like getrusage()
 * @pid: the process
 *
 * Return: seconds.
 */
double meter_process(pid_t pid);

/**
 * meter_first() - give this thread priority over all others
 *
 * The thread rarely runs, but it must read several clocks at the same time. Without the privilege
 * for this, the measurement continues at normal priority.
 */
void meter_first(void);

/**
 * meter_memory() - wait until the available memory has stopped changing, and return it
 *
 * Return: KiB.
 */
long meter_memory(void);

/**
 * meter_sleep() - sleep
 * @seconds: how long
 */
void meter_sleep(double seconds);

#endif
