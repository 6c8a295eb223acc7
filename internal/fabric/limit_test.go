// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fabric

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestRefusals(t *testing.T) {
	var r refusals
	now := time.Unix(1000, 0)
	for i, tc := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {time.Millisecond, 0}, {2 * time.Millisecond, 0}, {time.Second, 3}, {time.Second, 0}, {3 * time.Second, 2}} {
		if got := r.add(now.Add(tc.after)); got != tc.want {
			t.Errorf("connection %d: %d, want %d", i, got, tc.want)
		}
	}
}

func TestBucket(t *testing.T) {
	b := newBucket(3, 2)
	now := time.Unix(1000, 0)
	for i, tc := range []struct {
		after time.Duration
		ok    bool
	}{
		{0, true},
		{0, true},
		{0, true},
		{0, false},
		{400 * time.Millisecond, false},
		{600 * time.Millisecond, true},
		{600 * time.Millisecond, false},
		{time.Second, true},
		{time.Hour, true},
		{time.Hour, true},
		{time.Hour, true},
		{time.Hour, false},
		{time.Hour, false},
	} {
		wait := b.take(now.Add(tc.after))
		if (wait == 0) != tc.ok || wait < 0 || wait > time.Second {
			t.Errorf("number %d: wait %v", i, wait)
		}
		if wait > 0 && tc.after == time.Hour && b.take(now.Add(tc.after+wait)) != 0 {
			t.Errorf("number %d: it is too early after %v", i, wait)
		}
	}
}

// TestJoinRate checks that clients wait that join again and again.
func TestJoinRate(t *testing.T) {
	c := testConfig()
	c.joinRate = 1e-6
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range joinBurst + 1 {
		if got := f.pause(ended); got != (i < joinBurst) {
			t.Fatalf("client %d: %t", i, got)
		}
	}
}

// TestLinesAboutMembers checks that such lines are left out if there are too many, and that the next one says how many.
func TestLinesAboutMembers(t *testing.T) {
	s := start(t, testConfig(), t.TempDir())
	s.mu.Lock()
	s.lines = newBucket(2, 1e-6)
	for range 5 {
		s.logMember(&member{number: 3}, "joined")
	}
	s.lines = newBucket(1, 1e-6)
	s.logMember(&member{number: 3}, "left")
	s.mu.Unlock()
	want := []string{"member 3 joined, PID 0", "member 3 joined, PID 0", "3 lines about members are left out", "member 3 left, PID 0"}
	for i := range want {
		want[i] = "fabric blue: " + want[i]
	}
	if !slices.Equal(s.log.lines, want) {
		t.Errorf("%q", s.log.lines)
	}
}
