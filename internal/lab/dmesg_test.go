// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReports runs the scanner on logs that real kernels have printed.
func TestReports(t *testing.T) {
	for _, tc := range []struct{ name, log, want string }{
		{"oops", `[   11.2] BUG: kernel NULL pointer dereference, address: 0000000000000008`, "BUG: kernel NULL"},
		{"oops code", `[   11.2] Oops: 0002 [#1] PREEMPT SMP NOPTI`, "Oops: 0002"},
		{"page fault", `[   11.2] BUG: unable to handle page fault for address: ffffc90000a3f000`, "unable to handle page"},
		{"protection fault", `[    9.1] general protection fault, probably for non-canonical address 0xdead000000000110: 0000 [#1]`, "general protection"},
		{"BUG()", `[    3.2] kernel BUG at mm/slub.c:4065!`, "kernel BUG at"},
		{"WARN", `[    3.1] WARNING: CPU: 1 PID: 213 at net/smc/smc_core.c:1245 smc_conn_free+0x15c/0x160 [smc]`, "WARNING: CPU: 1"},
		{"WARN since 6.19", `[    3.1] WARNING: net/smc/smc_core.c:1245 at smc_conn_free+0x15c/0x160 [smc], CPU#1: smcapp/213`, "WARNING: net/smc"},
		{"deadlock", `[    5.0] WARNING: possible circular locking dependency detected`, "possible circular"},
		{"lock recursion", `[    5.0] WARNING: possible recursive locking detected`, "possible recursive"},
		{"lock state", `[    5.0] inconsistent {SOFTIRQ-ON-W} -> {IN-SOFTIRQ-W} usage.
[    5.0] WARNING: inconsistent lock state`, "inconsistent lock state"},
		{"lock without a key", `[    5.0] INFO: trying to register non-static key.`, "non-static key"},
		{"lockdep gives up", `[    5.0] turning off the locking correctness validator.`, "the locking correctness"},
		{"lockdep is off", `[    5.0] INFO: lockdep is turned off.`, "lockdep is turned off"},
		{"reference to a device", `[    5.0] ref_tracker: netdev@ffff888008150620 has 1/1 users at`, "has 1/1 users"},
		{"leaked reference", `[    5.0] leaked reference.`, "leaked reference"},
		{"socket released", `[    5.0] IPv4: Attempt to release TCP socket in state 1 00000000d1a9b4f4`, "Attempt to release"},
		{"sysctl", `[    5.0] sysctl table check failed: net/smc/wmem Not a file`, "sysctl table check"},
		{"preemption count", `[    5.0] huh, entered softirq 3 NET_RX with preempt_count 00000101, exited with 00000102?`, "huh, entered"},
		{"irq deadlock", `[    5.0] *** possible irq lock inversion dependency detected ***`, "irq lock inversion"},
		{"lockdep splat", `[    5.0] other info that might help us debug this:
[    5.0]  *** DEADLOCK ***`, "*** DEADLOCK ***"},
		{"unbalanced lock", `[    5.0] WARNING: bad unlock balance detected!`, "bad unlock"},
		{"lock held", `[    5.0] WARNING: lock held when returning to user space!`, "lock held when"},
		{"context", `[    5.0] BUG: Invalid wait context`, "Invalid wait context"},
		{"context word", `[    5.0] [ BUG: Invalid wait context ]`, "[ BUG: Invalid"},
		{"RCU use", `[    5.0] WARNING: suspicious RCU usage`, "suspicious RCU"},
		{"KASAN", `[    7.7] BUG: KASAN: slab-use-after-free in smc_lgr_put+0x29/0x90 [smc]`, "BUG: KASAN"},
		{"KASAN gpf", `[    7.7] KASAN: null-ptr-deref in range [0x0000000000000008-0x000000000000000f]`, "KASAN: null"},
		{"KFENCE", `[    7.7] BUG: KFENCE: use-after-free read in smc_rx_recvmsg+0x11/0x20`, "KFENCE"},
		{"UBSAN", `[    7.7] UBSAN: array-index-out-of-bounds in net/smc/smc_clc.c:417:22`, "UBSAN"},
		{"kmemleak", `[   99.0] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)`, "kmemleak: 3 new"},
		{"refcount", `[    4.4] refcount_t: underflow; use-after-free.`, "refcount_t: underflow"},
		{"hung task", `[  243.1] INFO: task smcapp:412 blocked for more than 120 seconds.`, "blocked for more"},
		{"RCU stall", `[   60.0] rcu: INFO: rcu_preempt self-detected stall on CPU`, "self-detected stall"},
		{"RCU stall of others", `[   60.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:`, "detected stalls"},
		{"RCU expedited stall", `[   60.0] rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-... } 21 jiffies s: 9 root: 0x1/.`, "expedited stalls"},
		{"soft lockup", `[   60.0] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [kworker/0:1:17]`, "soft lockup"},
		{"hard lockup", `[   60.0] watchdog: Watchdog detected hard LOCKUP on cpu 1`, "hard LOCKUP"},
		{"atomic", `[    2.0] BUG: scheduling while atomic: swapper/0/0/0x00000100`, "scheduling while atomic"},
		{"sleeping", `[    2.0] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:585`, "sleeping function"},
		{"list", `[    2.0] list_del corruption. prev->next should be ffff888103a4b118, but was dead000000000100`, "list_del corruption"},
		{"netdev", `[   20.0] unregister_netdevice: waiting for eth0 to become free. Usage count = 2`, "unregister_netdevice"},
		{"allocation", `[    8.0] smcapp: page allocation failure: order:5, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)`, "page allocation"},
		{"out of memory", `[    8.0] Out of memory: Killed process 331 (smcapp) total-vm:905304kB, anon-rss:502232kB`, "Out of memory"},
		{"slab", `[    2.0] BUG kmalloc-64 (Not tainted): Redzone overwritten`, "Redzone overwritten"},
		{"slab left", `[    2.0] BUG smc_sock (Tainted: G    B): Objects remaining on __kmem_cache_shutdown()`, "Objects remaining"},
		{"ODEBUG", `[    2.0] ODEBUG: free active (active state 0) object: ffff888 object type: timer_list hint: smc_llc_testlink_work+0x0/0x90`, "ODEBUG"},
		{"DMA", `[    2.0] DMA-API: rxe 0000:00:03.0: device driver failed to check map error`, "DMA-API"},
		{"stack", `[    2.0] Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: smc_tx_work`, "Kernel panic"},
		{"backtrace alone", `[    2.0] Call Trace:`, "Call Trace"},
		{"segfault", `[    2.0] smcss[312]: segfault at 0 ip 00007f sp 00007ffd error 4 in libc.so.6`, ""},

		{"command line", `[    0.0] Kernel command line: panic=-1 oops=panic loglevel=5 lockdep=on`, ""},
		{"lockdep at boot", `[    0.0] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar`, ""},
		{"self-tests at boot", `[    0.1]      hard-irqs-on + irq-safe-A/12:  ok  |  ok  |  ok  |`, ""},
		{"rcu at boot", `[    0.0] rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.`, ""},
		{"KASAN at boot", `[    0.0] kasan: KernelAddressSanitizer initialized`, ""},
		{"kmemleak at boot", `[    1.0] kmemleak: Kernel memory leak detector initialized (mem pool available: 15679)`, ""},
		{"KFENCE at boot", `[    0.1] kfence: initialized - using 2097152 bytes for 255 objects at 0x(____ptrval____)-0x(____ptrval____)`, ""},
		{"UBSAN-free name", `[    1.0] Warning: unable to open an initial console.`, ""},
		{"taint", `[    4.0] smc: loading out-of-tree module taints kernel.`, ""},
		{"link", `[    3.0] smc: adding ib device rxe0 with port count 1`, ""},
		{"rxe", `[    3.0] rdma_rxe: loaded`, ""},
		{"floods", `[    5.0] TCP: request_sock_TCP: Possible SYN flooding on port 0.0.0.0:5001. Sending cookies.`, ""},
		{"mitigation", `[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on, data leaks possible via Spectre v2 BHB attacks!`, ""},
		{"debug notice", `[    0.0] **   NOTICE NOTICE NOTICE NOTICE NOTICE NOTICE NOTICE    **`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Reports(tc.log + "\r\n[    9.9] another line\n")
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("harmless, but reported: %q", got)
			case tc.want != "" && !strings.Contains(strings.Join(got, "\n"), tc.want):
				t.Errorf("reported %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReportsAllowed(t *testing.T) {
	log := "[1] WARNING: CPU: 0 PID: 1 at net/a.c:1\n[2] WARNING: CPU: 0 PID: 1 at net/b.c:1\n"
	got := Reports(log, regexp.MustCompile(`net/a\.c`))
	if diff := cmp.Diff([]string{"[2] WARNING: CPU: 0 PID: 1 at net/b.c:1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFormatLog(t *testing.T) {
	got, err := formatLog("5,0,0,-;Linux version 6.12\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0\n" +
		"4,1,12000345,-,caller=T1;a;b \\x1b[0m\n12,2,3000000000,c;\n")
	want := "[    0.000000] Linux version 6.12\n[   12.000345] a;b \\x1b[0m\n[ 3000.000000] \n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for name, log := range map[string]string{
		"start lost":  "6,17,99,-;late\n",
		"middle lost": "6,0,1,-;x\n6,2,1,-;y\n",
		"no number":   "6,x,1,-;y\n",
		"no time":     "6,0,x,-;y\n",
	} {
		if _, err := formatLog(log); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
