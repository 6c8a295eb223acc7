/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: of the wall, of processes, of the machine. */
#ifndef METER_H
#define METER_H

#include <sys/types.h>

/**
 * struct meter - readings of all clocks, in seconds
 * @when: wall clock
 * @cpu: processor time of processes
 * @busy: time in which processors of the machine have had something to do since it was booted, all
 *	processors together; that of interrupts, softirqs and kernel threads, too, which is in no
 *	process's bill
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
 * meter_process() - user and system time, as getrusage() has it, of a process that has not ended
 * @pid: the process
 *
 * Return: seconds.
 */
double meter_process(pid_t pid);

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
