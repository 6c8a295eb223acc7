/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: of the wall, of processes, of the machine. */
#ifndef METER_H
#define METER_H

#include <sys/types.h>

/**
 * struct meter - readings of all clocks, in seconds
 * @when: wall clock
 * @cpu: processor time of both processes
 * @idle: time in which processors of the machine had nothing to do, all processors together
 */
struct meter {
	double when, cpu, idle;
};

/**
 * meter_now() - read the wall clock
 *
 * Return: seconds.
 */
double meter_now(void);

/**
 * meter_read() - read the clocks
 * @server: the other process
 *
 * Return: readings.
 */
struct meter meter_read(pid_t server);

/**
 * meter_busy() - time that processors of the machine were not idle between two readings
 * @a: earlier reading
 * @b: later reading
 *
 * This includes what is in no process's bill: interrupts, softirqs and kernel threads.
 *
 * Return: seconds.
 */
double meter_busy(const struct meter *a, const struct meter *b);

/**
 * meter_first() - have this thread run as soon as it wants to, whatever else is runnable
 *
 * It hardly ever does; but readings of several clocks have to be taken at one time. Whoever may not
 * have that, measures without.
 */
void meter_first(void);

/**
 * meter_memory() - memory that is available, once it has stopped changing
 *
 * Return: KiB.
 */
long meter_memory(void);

/**
 * meter_sleep() - let time pass
 * @seconds: how long
 */
void meter_sleep(double seconds);

#endif
