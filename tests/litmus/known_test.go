// SPDX-License-Identifier: Apache-2.0

package litmus

import "testing"

// known are litmus tests of the literature, with the results that the Linux kernel memory model has for them.
var known = []struct {
	never  bool
	source string
}{
	{true, `C CoRR {} P0(int *x) { WRITE_ONCE(*x, 1); } P1(int *x) { int r0; int r1; r0 = READ_ONCE(*x); r1 = READ_ONCE(*x); }
		exists (1:r0=1 /\ 1:r1=0)`},
	{true, `C CoRW {} P0(int *x) { int r0; r0 = READ_ONCE(*x); WRITE_ONCE(*x, 1); } P1(int *x) { WRITE_ONCE(*x, 2); } exists (x=2 /\ 0:r0=2)`},
	{true, `C CoWR {} P0(int *x) { int r0; WRITE_ONCE(*x, 1); r0 = READ_ONCE(*x); } P1(int *x) { WRITE_ONCE(*x, 2); } exists (x=1 /\ 0:r0=2)`},
	{true, `C CoWW {} P0(int *x) { WRITE_ONCE(*x, 1); WRITE_ONCE(*x, 2); } exists (x=1)`},
	{false, `C MP {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 1:r1=0)`},
	{false, `C MP+wmb {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_wmb(); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 1:r1=0)`},
	{true, `C MP+wmb+rmb {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_wmb(); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); smp_rmb(); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 1:r1=0)`},
	{true, `C MP+rel+acq {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_store_release(y, 1); }
		P1(int *x, int *y) { int r0; int r1; r0 = smp_load_acquire(y); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 1:r1=0)`},
	{false, `C MP+rel+ctrl {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_store_release(y, 1); }
		P1(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); if (r0) { r1 = READ_ONCE(*x); } } exists (1:r0=1 /\ 1:r1=0)`},
	{true, `C MP+polocks {} P0(int *x, int *y, spinlock_t *l) { WRITE_ONCE(*x, 1); spin_lock(l); WRITE_ONCE(*y, 1); spin_unlock(l); }
		P1(int *x, int *y, spinlock_t *l) { int r0; int r1; spin_lock(l); r0 = READ_ONCE(*y); spin_unlock(l); r1 = READ_ONCE(*x); }
		exists (1:r0=1 /\ 1:r1=0)`},
	{false, `C MP+before-lock {} P0(int *x, int *y, spinlock_t *l) { WRITE_ONCE(*x, 1); spin_lock(l); WRITE_ONCE(*y, 1); spin_unlock(l); }
		P1(int *x, int *y) { int r0; int r1; r0 = smp_load_acquire(y); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 1:r1=0)`},
	{true, `C MP+porevlocks {} P0(int *x, int *y, spinlock_t *l) { int r0; int r1; r0 = READ_ONCE(*y); spin_lock(l); r1 = READ_ONCE(*x); spin_unlock(l); }
		P1(int *x, int *y, spinlock_t *l) { spin_lock(l); WRITE_ONCE(*x, 1); spin_unlock(l); WRITE_ONCE(*y, 1); } exists (0:r0=1 /\ 0:r1=0)`},
	{false, `C SB {} P0(int *x, int *y) { int r0; WRITE_ONCE(*x, 1); r0 = READ_ONCE(*y); }
		P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 1); r0 = READ_ONCE(*x); } exists (0:r0=0 /\ 1:r0=0)`},
	{true, `C SB+mbs {} P0(int *x, int *y) { int r0; WRITE_ONCE(*x, 1); smp_mb(); r0 = READ_ONCE(*y); }
		P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 1); smp_mb(); r0 = READ_ONCE(*x); } exists (0:r0=0 /\ 1:r0=0)`},
	{false, `C SB+mb+rel-acq {} P0(int *x, int *y) { int r0; WRITE_ONCE(*x, 1); smp_mb(); r0 = READ_ONCE(*y); }
		P1(int *x, int *y) { int r0; smp_store_release(y, 1); r0 = smp_load_acquire(x); } exists (0:r0=0 /\ 1:r0=0)`},
	{true, `C SB+xchg {} P0(int *x, int *y) { int r0; int r1; r1 = xchg(x, 1); r0 = READ_ONCE(*y); }
		P1(int *x, int *y) { int r0; smp_store_mb(*y, 1); r0 = READ_ONCE(*x); } exists (0:r0=0 /\ 1:r0=0)`},
	{false, `C SB+xchg-relaxed {} P0(int *x, int *y) { int r0; int r1; r1 = xchg_relaxed(x, 1); r0 = READ_ONCE(*y); }
		P1(int *x, int *y) { int r0; smp_store_mb(*y, 1); r0 = READ_ONCE(*x); } exists (0:r0=0 /\ 1:r0=0)`},
	{true, `C SB+after-spinlock {} P0(int *x, int *y, spinlock_t *l) { int r0; WRITE_ONCE(*x, 1); spin_lock(l); smp_mb__after_spinlock();
		r0 = READ_ONCE(*y); spin_unlock(l); } P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 1); smp_mb(); r0 = READ_ONCE(*x); }
		exists (0:r0=0 /\ 1:r0=0)`},
	{false, `C SB+lock {} P0(int *x, int *y, spinlock_t *l) { int r0; WRITE_ONCE(*x, 1); spin_lock(l);
		r0 = READ_ONCE(*y); spin_unlock(l); } P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 1); smp_mb(); r0 = READ_ONCE(*x); }
		exists (0:r0=0 /\ 1:r0=0)`},
	{false, `C SB+rfi {} P0(int *x, int *y) { int r1; int r2; WRITE_ONCE(*x, 1); r1 = READ_ONCE(*x); r2 = READ_ONCE(*y); }
		P1(int *x, int *y) { int r3; int r4; WRITE_ONCE(*y, 1); r3 = READ_ONCE(*y); r4 = READ_ONCE(*x); }
		exists (0:r1=1 /\ 0:r2=0 /\ 1:r3=1 /\ 1:r4=0)`},
	{false, `C LB {} P0(int *x, int *y) { int r0; r0 = READ_ONCE(*x); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; r0 = READ_ONCE(*y); WRITE_ONCE(*x, 1); } exists (0:r0=1 /\ 1:r0=1)`},
	{true, `C LB+ctrl+mb {} P0(int *x, int *y) { int r0; r0 = READ_ONCE(*x); if (r0) { WRITE_ONCE(*y, 1); } }
		P1(int *x, int *y) { int r0; r0 = READ_ONCE(*y); smp_mb(); WRITE_ONCE(*x, 1); } exists (0:r0=1 /\ 1:r0=1)`},
	{false, `C LB+join+mb {} P0(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*x); if (r0) { r1 = 1; } WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; r0 = READ_ONCE(*y); smp_mb(); WRITE_ONCE(*x, 1); } exists (0:r0=1 /\ 1:r0=1)`},
	{true, `C LB+data+mb {} P0(int *x, int *y) { int r0; r0 = READ_ONCE(*x); WRITE_ONCE(*y, r0); }
		P1(int *x, int *y) { int r0; r0 = READ_ONCE(*y); smp_mb(); WRITE_ONCE(*x, 1); } exists (0:r0=1 /\ 1:r0=1)`},
	{true, `C LB+acq+rel {} P0(int *x, int *y) { int r0; r0 = READ_ONCE(*x); smp_store_release(y, 1); }
		P1(int *x, int *y) { int r0; r0 = smp_load_acquire(y); WRITE_ONCE(*x, 1); } exists (0:r0=1 /\ 1:r0=1)`},
	{false, `C R {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 2); r0 = READ_ONCE(*x); } exists (y=2 /\ 1:r0=0)`},
	{true, `C R+mbs {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_mb(); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 2); smp_mb(); r0 = READ_ONCE(*x); } exists (y=2 /\ 1:r0=0)`},
	{false, `C S {} P0(int *x, int *y) { WRITE_ONCE(*x, 2); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; r0 = READ_ONCE(*y); WRITE_ONCE(*x, 1); } exists (x=2 /\ 1:r0=1)`},
	{true, `C S+wmb+acq {} P0(int *x, int *y) { WRITE_ONCE(*x, 2); smp_wmb(); WRITE_ONCE(*y, 1); }
		P1(int *x, int *y) { int r0; r0 = smp_load_acquire(y); WRITE_ONCE(*x, 1); } exists (x=2 /\ 1:r0=1)`},
	{false, `C IRIW {} P0(int *x) { WRITE_ONCE(*x, 1); } P1(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*x); r1 = READ_ONCE(*y); }
		P2(int *y) { WRITE_ONCE(*y, 1); } P3(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); r1 = READ_ONCE(*x); }
		exists (1:r0=1 /\ 1:r1=0 /\ 3:r0=1 /\ 3:r1=0)`},
	{false, `C IRIW+acqs {} P0(int *x) { WRITE_ONCE(*x, 1); } P1(int *x, int *y) { int r0; int r1; r0 = smp_load_acquire(x); r1 = READ_ONCE(*y); }
		P2(int *y) { WRITE_ONCE(*y, 1); } P3(int *x, int *y) { int r0; int r1; r0 = smp_load_acquire(y); r1 = READ_ONCE(*x); }
		exists (1:r0=1 /\ 1:r1=0 /\ 3:r0=1 /\ 3:r1=0)`},
	{true, `C IRIW+mbs {} P0(int *x) { WRITE_ONCE(*x, 1); } P1(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*x); smp_mb(); r1 = READ_ONCE(*y); }
		P2(int *y) { WRITE_ONCE(*y, 1); } P3(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); smp_mb(); r1 = READ_ONCE(*x); }
		exists (1:r0=1 /\ 1:r1=0 /\ 3:r0=1 /\ 3:r1=0)`},
	{false, `C WRC {} P0(int *x) { WRITE_ONCE(*x, 1); } P1(int *x, int *y) { int r0; r0 = READ_ONCE(*x); WRITE_ONCE(*y, 1); }
		P2(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 2:r0=1 /\ 2:r1=0)`},
	{true, `C WRC+rel+rmb {} P0(int *x) { WRITE_ONCE(*x, 1); } P1(int *x, int *y) { int r0; r0 = READ_ONCE(*x); smp_store_release(y, 1); }
		P2(int *x, int *y) { int r0; int r1; r0 = READ_ONCE(*y); smp_rmb(); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 2:r0=1 /\ 2:r1=0)`},
	{true, `C ISA2+rel+acq-rel+acq {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_store_release(y, 1); }
		P1(int *y, int *z) { int r0; r0 = smp_load_acquire(y); smp_store_release(z, 1); }
		P2(int *x, int *z) { int r0; int r1; r0 = smp_load_acquire(z); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 2:r0=1 /\ 2:r1=0)`},
	{false, `C ISA2 {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); WRITE_ONCE(*y, 1); }
		P1(int *y, int *z) { int r0; r0 = READ_ONCE(*y); WRITE_ONCE(*z, 1); }
		P2(int *x, int *z) { int r0; int r1; r0 = READ_ONCE(*z); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 2:r0=1 /\ 2:r1=0)`},
	{false, `C Z6.0+rel+acq-rel+mb {} P0(int *x, int *y) { WRITE_ONCE(*x, 1); smp_store_release(y, 1); }
		P1(int *y, int *z) { int r0; r0 = smp_load_acquire(y); smp_store_release(z, 1); }
		P2(int *x, int *z) { int r1; WRITE_ONCE(*z, 2); smp_mb(); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ z=2 /\ 2:r1=0)`},
	{false, `C Z6.0+locks+mb {} P0(int *x, int *y, spinlock_t *l) { spin_lock(l); WRITE_ONCE(*x, 1); WRITE_ONCE(*y, 1); spin_unlock(l); }
		P1(int *y, int *z, spinlock_t *l) { int r0; spin_lock(l); r0 = READ_ONCE(*y); WRITE_ONCE(*z, 1); spin_unlock(l); }
		P2(int *x, int *z) { int r1; WRITE_ONCE(*z, 2); smp_mb(); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ z=2 /\ 2:r1=0)`},
	{true, `C Z6.0+after-spinlock+mb {} P0(int *x, int *y, spinlock_t *l) { spin_lock(l); WRITE_ONCE(*x, 1); WRITE_ONCE(*y, 1); spin_unlock(l); }
		P1(int *y, int *z, spinlock_t *l) { int r0; spin_lock(l); smp_mb__after_spinlock(); r0 = READ_ONCE(*y); WRITE_ONCE(*z, 1); spin_unlock(l); }
		P2(int *x, int *z) { int r1; WRITE_ONCE(*z, 2); smp_mb(); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ z=2 /\ 2:r1=0)`},
	{false, `C SB+lock-after-atomic {} P0(int *x, int *y, spinlock_t *l) { int r0; WRITE_ONCE(*x, 1); spin_lock(l); smp_mb__after_atomic();
		r0 = READ_ONCE(*y); spin_unlock(l); } P1(int *x, int *y) { int r0; WRITE_ONCE(*y, 1); smp_mb(); r0 = READ_ONCE(*x); }
		exists (0:r0=0 /\ 1:r0=0)`},
	{true, `C exclusion {} P0(int *x, spinlock_t *l) { int r0; spin_lock(l); r0 = READ_ONCE(*x); WRITE_ONCE(*x, r0 + 1); spin_unlock(l); }
		P1(int *x, spinlock_t *l) { int r0; spin_lock(l); r0 = READ_ONCE(*x); WRITE_ONCE(*x, r0 + 1); spin_unlock(l); } exists (x=1)`},
	{true, `C counted {} P0(atomic_t *n) { atomic_inc(n); } P1(atomic_t *n) { atomic_inc(n); } exists (n=1)`},
	{true, `C taken-once {} P0(atomic_t *n) { int r0; r0 = atomic_inc_return(n); } P1(atomic_t *n) { int r0; r0 = atomic_inc_return(n); }
		exists (0:r0=1 /\ 1:r0=1)`},
	{true, `C exchanged-once {} P0(int *x) { int r0; r0 = cmpxchg(x, 0, 1); } P1(int *x) { int r0; r0 = cmpxchg(x, 0, 2); } exists (0:r0=0 /\ 1:r0=0)`},
	{true, `C MP+before-atomic+acq {} P0(int *x, atomic_t *n) { WRITE_ONCE(*x, 1); smp_mb__before_atomic(); atomic_inc(n); }
		P1(int *x, atomic_t *n) { int r0; int r1; r0 = atomic_read_acquire(n); r1 = READ_ONCE(*x); } exists (1:r0=1 /\ 1:r1=0)`},
}

func TestKnown(t *testing.T) {
	for _, k := range known {
		lt, err := parse(k.source)
		if err != nil {
			t.Fatal(err)
		}
		possible, err := lt.possible()
		if err != nil || possible == k.never {
			t.Errorf("%s: possible: %t, want %t, %v", lt.name, possible, !k.never, err)
		}
	}
}

// TestRefused checks that what the checker does not know is an error, and is not left out.
func TestRefused(t *testing.T) {
	for what, source := range map[string]string{
		"value of a place":    `C X { x=1; } P0(int *x) { WRITE_ONCE(*x, 2); } exists (x=1)`,
		"type of a parameter": `C X {} P0(long *x) { WRITE_ONCE(*x, 1); } exists (x=1)`,
		"value of a register": `C X {} P0(int *x) { int r0 = 1; WRITE_ONCE(*x, 1); } exists (x=1)`,
		"call":                `C X {} P0(int *x) { smp_store_nothing(x, 1); } exists (x=1)`,
		"operator":            `C X {} P0(int *x) { WRITE_ONCE(*x, 3 % 2); } exists (x=1)`,
		"what follows":        `C X {} P0(int *x) { WRITE_ONCE(*x, 1); } exists (x=1) locations`,
	} {
		lt, err := parse(source)
		if err == nil {
			_, err = lt.possible()
		}
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}
